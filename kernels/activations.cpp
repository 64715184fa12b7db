#include "kernels/backend.h"

namespace recto {

std::string activations_name(Activations mode) {
    const std::string above = " above " + std::to_string(eight_bit_rows) + " rows";
    switch (mode) {
        case Activations::int8:
            return "int8";
        case Activations::int8_twice:
            return "int8 (twice)";
        case Activations::floating:
            return "floating";
        case Activations::token_fp8:
            return "fp8_e4m3" + above;
        case Activations::token_int8:
            return "int8" + above;
    }
    return "?";
}

}  // namespace recto
