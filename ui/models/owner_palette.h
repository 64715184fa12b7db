// Which hue and pattern draws whose blocks. Handed out in order at first need, and kept for life.
#pragma once
#include <unordered_map>

#include "engine/kv/block_pool.h"

namespace recto::ui {

// In the order that they are handed out (reference: Okabe & Ito, "Color Universal Design"; order by the
// closest pair under simulated colour-vision deficiency).
enum class OwnerHue : std::uint8_t { sky, vermillion, yellow, blue, purple, green, orange };
enum class OwnerPattern : std::uint8_t {
    solid,
    horizontal_bars,
    dots,
    cross_hatch
};  // diagonals mean shared
constexpr int owner_hues = 7, owner_patterns = 4;

struct OwnerStyle {
    OwnerHue hue{};
    OwnerPattern pattern{};
    int number = 0;  // 0 …, in order of handing out
};
// Hue and pattern together repeat only after 28.
OwnerStyle owner_style(int number);
unsigned owner_rgb(OwnerHue hue);  // 0xRRGGBB

class OwnerPalette {
  public:
    OwnerStyle style(OwnerId owner);  // hands out
    bool has(OwnerId owner) const { return numbers_.count(owner) != 0; }

  private:
    std::unordered_map<OwnerId, int> numbers_;
};

}  // namespace recto::ui
