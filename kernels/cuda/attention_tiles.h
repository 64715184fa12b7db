// How a lane's loads become fragments of mma.m16n8k16 without passing through shared memory (decode
// attention).
//
// The order of the inner dimension of a product is free as long as both factors agree, and so is the order in
// which an output's rows are named. So a lane reads runs of consecutive elements, as long as a load is wide,
// and calls them by the places the instruction gives that lane. Only integers here: tests check them on the
// host.
#pragma once

namespace recto::cuda {

// A row of `dim` elements shared out to `lanes` lanes: segment s covers `lanes * width[s]` elements from
// base[s], lane i holding width[s] consecutive ones from base[s] + i * width[s].
struct RowSegments {
    static constexpr int most = 8;
    int count = 0;
    int base[most] = {};
    int width[most] = {};       // elements a lane
    int first_word[most] = {};  // where the segment lies in a lane's array of 32-bit words
    int words = 0;              // of all segments
};

// The widest runs that 16-byte loads allow, narrower ones for what is left. dim is a multiple of 16.
constexpr RowSegments row_segments(int dim, int lanes, int element_bytes) {
    RowSegments s;
    int width = 16 / element_bytes;
    for (int base = 0; base < dim;) {
        while (base + lanes * width > dim)
            width /= 2;
        s.base[s.count] = base;
        s.width[s.count] = width;
        s.first_word[s.count] = s.words;
        const int bytes = width * element_bytes;
        s.words += bytes < 4 ? 1 : bytes / 4;
        base += lanes * width;
        ++s.count;
    }
    return s;
}

// Keys and queries: 4 lanes share a row. Step k of the score product takes 4 consecutive elements of each
// lane: the instruction's columns 2c, 2c + 1 and 2c + 8, 2c + 9 for lane c.
constexpr int key_lanes = 4;
// Values: 8 lanes share a row. Tile t of a segment is the instruction's rows g and g + 8 for lane g: elements
// 2t and 2t + 1 of the lane's run.
constexpr int value_lanes = 8;

// The first of the 4 elements that lane c brings to step k.
constexpr int key_element(const RowSegments& s, int k, int c) {
    for (int i = 0; i < s.count; ++i) {
        const int steps = s.width[i] / 4;
        if (k < steps) return s.base[i] + c * s.width[i] + 4 * k;
        k -= steps;
    }
    return -1;
}

}  // namespace recto::cuda
