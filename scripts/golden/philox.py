"""Philox4x32-10 in numpy, checked against its authors' known answers. Writes philox.json.

    python3 scripts/golden/philox.py tests/golden

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011); the
known answers are the three "philox4x32 10" lines of tests/kat_vectors in the authors' library,
github.com/DEShawResearch/random123.
"""

import sys

import numpy as np

from golden_io import generator_command, write_json

MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
KEY_STEPS = np.array(
    [0x9E3779B9, 0xBB67AE85], dtype=np.uint32
)  # golden ratio and sqrt(3) - 1, as fractions
ROUNDS = 10

# name, counter[4], key[2], output[4]
KNOWN_ANSWERS = [
    ("zeros", [0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ("ones", [0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        "pi",
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


def multiply_wide(multiplier, word):
    """High and low half of the 64-bit product."""
    product = multiplier * np.uint64(word)
    return np.uint32(product >> np.uint64(32)), np.uint32(product & np.uint64(0xFFFFFFFF))


def philox4x32_10(counter, key):
    """Four 32-bit words from a 128-bit counter and a 64-bit key, least significant word first."""
    c = np.array(counter, dtype=np.uint32)
    k = np.array(key, dtype=np.uint32)
    for _ in range(ROUNDS):
        high0, low0 = multiply_wide(MULTIPLIERS[0], c[0])
        high1, low1 = multiply_wide(MULTIPLIERS[1], c[2])
        c = np.array([high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0], dtype=np.uint32)
        k = k + KEY_STEPS  # wraps at 2^32; the sum after the last round is unused
    return [int(word) for word in c]


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: python3 scripts/golden/philox.py OUTPUT_FOLDER")
    vectors = []
    for name, counter, key, published in KNOWN_ANSWERS:
        output = philox4x32_10(counter, key)
        if output != published:
            sys.exit(f"philox: vector '{name}' gives {output}, published is {published}")
        vectors.append({"name": name, "counter": counter, "key": key, "output": output})
    document = {
        "generator": generator_command(),
        "numpy": np.__version__,
        "source": "Random123 tests/kat_vectors, the philox4x32 10 lines",
        "tolerance": "exact",
        "vectors": vectors,
    }
    write_json(sys.argv[1], "philox.json", document)


if __name__ == "__main__":
    main()
