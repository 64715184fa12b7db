#include "ui/models/owner_palette.h"

#include <array>

namespace recto::ui {

OwnerStyle owner_style(int number) {
    OwnerStyle style;
    style.number = number;
    style.hue = OwnerHue(number % owner_hues);
    // Neighbours in order differ in pattern, and a hue that comes round again has another one.
    style.pattern = OwnerPattern((number % owner_hues + number / owner_hues) % owner_patterns);
    return style;
}

unsigned owner_rgb(OwnerHue hue) {
    constexpr std::array<unsigned, owner_hues> okabe_ito{0x56B4E9, 0xD55E00, 0xF0E442, 0x0072B2,
                                                         0xCC79A7, 0x009E73, 0xE69F00};
    return okabe_ito[std::size_t(hue)];
}

OwnerStyle OwnerPalette::style(OwnerId owner) {
    const auto [at, added] = numbers_.try_emplace(owner, int(numbers_.size()));
    return owner_style(at->second);
}

}  // namespace recto::ui
