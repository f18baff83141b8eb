"""Philox 4×32-10 in plain Python whole numbers, one counter at a time: the oracle of the words."""


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Ten rounds as Salmon et al. (SC 2011) print them."""
    c = list(counter)
    k = list(key)
    for number in range(10):
        if number > 0:
            k[0] = (k[0] + 0x9E3779B9) % 2**32
            k[1] = (k[1] + 0xBB67AE85) % 2**32
        high0, low0 = divmod(0xD2511F53 * c[0], 2**32)
        high1, low1 = divmod(0xCD9E8D57 * c[2], 2**32)
        c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0]
    return c[0], c[1], c[2], c[3]


def words(
    seed: int, step: int, sample: int, candidate: int, slot: int, purpose: int
) -> tuple[int, int, int, int]:
    """The four words of one draw, from the layout of the counter that the library documents."""
    counter = (sample % 2**32, step % 2**32, candidate + 65536 * slot, purpose)
    return philox(counter, (seed % 2**32, seed // 2**32))
