// How the bytes of a tensor reach a file: in order, in pieces, so that no more than a piece is in memory.
#pragma once
#include <cstddef>
#include <functional>
#include <span>

namespace recto {

using ByteSink = std::function<void(std::span<const std::byte>)>;
using ByteSource = std::function<void(const ByteSink&)>;  // hands all its bytes to the sink

// Share of all bytes that are written, 0 … 1. May throw Error(cancelled) to stop.
using SaveProgress = std::function<void(double fraction)>;

// Pieces of about this size are filled on all threads, then written.
constexpr std::size_t save_piece_bytes = 16U << 20;

// Calls body(begin, end) for consecutive parts of 0 … n on all cores that this process may use; the first
// exception of a part is thrown here. Part borders are multiples of `grain`.
void for_parts(std::size_t n, std::size_t grain, const std::function<void(std::size_t, std::size_t)>& body);

}  // namespace recto
