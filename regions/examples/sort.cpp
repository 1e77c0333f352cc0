// Sorts numbers in two ways, each a region.
//
//     cargo build --release -p perfprop-regions
//     c++ -I regions/include regions/examples/sort.cpp -L target/release -lperfprop_regions -o sort
//     LD_LIBRARY_PATH=target/release perfprop stat -- ./sort

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "perfprop.h"

static std::vector<uint32_t> numbers(size_t count) {
    perfprop::region open("make numbers");
    std::vector<uint32_t> made(count);
    uint32_t last = 1;
    for (auto &number : made) {
        number = last = last * 1664525 + 1013904223;
    }
    return made;
}

int main() {
    for (int round = 0; round < 20; round++) {
        perfprop::region open("round");
        auto fast = numbers(20000), stable = fast;
        {
            perfprop::region sorts("sort");
            std::sort(fast.begin(), fast.end());
        }
        {
            perfprop::region sorts("stable_sort");
            std::stable_sort(stable.begin(), stable.end());
        }
        if (fast != stable) {
            return 1;
        }
    }
    try {
        perfprop::region open("throws");
        throw std::runtime_error("a region ends by an exception");
    } catch (const std::exception &error) {
        std::puts(error.what());
    }
    return 0;
}
