#include "engine/sample/stop_text.h"

#include <algorithm>
#include <utility>

namespace recto {

StopText::Result StopText::append(std::string_view added, bool counts) {
    if (stop_.empty()) return {std::string(added), nullptr};
    const std::size_t old = held_.size();
    held_ += added;
    if (counts) {
        std::size_t begin = std::string::npos;
        const std::string* match = nullptr;
        for (const std::string& s : stop_) {
            const std::size_t from = old + 1 > s.size() ? old + 1 - s.size() : 0;
            const std::size_t at = held_.find(s, from);
            if (at == std::string::npos) continue;
            if (match && (at > begin || (at == begin && s.size() >= match->size()))) continue;
            begin = at;
            match = &s;
        }
        if (match) {
            held_.resize(begin + (include_ ? match->size() : 0));
            return {std::exchange(held_, {}), match};
        }
    }
    const std::size_t certain = held_.size() - held_tail(held_);
    Result result{held_.substr(0, certain), nullptr};
    held_.erase(0, certain);
    return result;
}

std::string StopText::flush() {
    return std::exchange(held_, {});
}

std::size_t StopText::held_tail(std::string_view text) const {
    std::size_t longest = 0;
    for (const std::string& s : stop_) {
        for (std::size_t n = std::min(s.size() - 1, text.size()); n > longest; --n) {
            if (!text.ends_with(std::string_view(s).substr(0, n))) continue;
            longest = n;
            break;
        }
    }
    return longest;
}

}  // namespace recto
