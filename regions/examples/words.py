"""Counts words in two ways, each a region.

    cargo build --release -p perfprop-regions
    PERFPROP_REGIONS_LIBRARY=target/release/libperfprop_regions.so PYTHONPATH=regions/python \\
        perfprop stat -- python3 regions/examples/words.py
"""

import collections

from perfprop_regions import measured, region

TEXT = "the quick brown fox jumps over the lazy dog " * 2000


@measured
def depth(left):
    return 0 if left == 0 else 1 + depth(left - 1)


for _ in range(10):
    with region("round"):
        with region("Counter"):
            by_counter = collections.Counter(TEXT.split())
        with region("dict"):
            by_dict = {}
            for word in TEXT.split():
                by_dict[word] = by_dict.get(word, 0) + 1
        assert by_counter == by_dict
print(by_dict["the"], depth(20))
