// Logical block → physical block of one sequence. Append-only while the sequence runs.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/kv/block_pool.h"

namespace recto {

constexpr std::int32_t blocks_for(std::int64_t tokens, std::int32_t block_size) {
    return std::int32_t((tokens + block_size - 1) / block_size);
}

struct BlockTable {
    std::vector<BlockId> blocks;
    std::int32_t named = 0;             // leading blocks that have a prefix key
    std::uint64_t chain = prefix_root;  // Block::chain of the last of them

    std::int32_t size() const { return std::int32_t(blocks.size()); }
    std::int32_t slot(std::int32_t position, std::int32_t block_size) const {
        return blocks[std::size_t(position / block_size)] * block_size + position % block_size;
    }
};

}  // namespace recto
