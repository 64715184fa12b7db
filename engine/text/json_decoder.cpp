#include "engine/text/json_parts.h"

namespace recto {

namespace {

void strip(const JsonPart& part, JsonDecoder& decoder) {
    if (part.text("content") != " " || part.number("start", 0) > 1 || part.number("stop", 0) != 0)
        part.unsupported("stripping other than one leading blank");
    decoder.strips_leading_space = part.number("start", 0) == 1;
}

}  // namespace

void json_decoder(const JsonPart& part, JsonDecoder& decoder) {
    const std::string type = part.type();
    if (type == "Sequence") {
        for (const auto& step : part.list("decoders"))
            json_decoder(part.part(step), decoder);
    } else if (type == "ByteLevel") {
        decoder.byte_level = true;
    } else if (type == "ByteFallback") {
        decoder.byte_fallback = true;
    } else if (type == "Fuse") {
        // Tokens are bytes here: they are always fused.
    } else if (type == "Replace") {
        const JsonPart pattern = part.part("pattern");
        if (!pattern.has("String")) part.unsupported("a replacement by pattern");
        decoder.replacements.emplace_back(pattern.text("String"), part.text("content"));
        if (decoder.replacements.back().first.empty()) part.fail("a pattern", "an empty text");
    } else if (type == "Metaspace") {
        decoder.replacements.emplace_back(part.text("replacement", "▁"), " ");
        decoder.strips_leading_space =
            part.text("prepend_scheme", part.flag("add_prefix_space", true) ? "always" : "never") != "never";
    } else if (type == "Strip") {
        strip(part, decoder);
    } else {
        part.unsupported("the decoder \"" + type + "\"");
    }
}

std::vector<std::int32_t> json_prefix(const JsonPart& part) {
    const std::string type = part.type();
    std::vector<std::int32_t> ids;
    if (type == "Sequence") {
        for (const auto& step : part.list("processors")) {
            const auto more = json_prefix(part.part(step));
            ids.insert(ids.begin(), more.begin(), more.end());
        }
    } else if (type == "TemplateProcessing") {
        const JsonPart tokens = part.part("special_tokens");
        for (const auto& item : part.list("single")) {
            const JsonPart piece = part.part(item);
            if (!piece.has("SpecialToken")) break;  // the text itself: what follows it is no prefix
            const JsonPart token = tokens.part(piece.part("SpecialToken").text("id").c_str());
            for (const auto& id : token.list("ids")) {
                if (!id.is_number_integer()) token.fail("token ids", id.type_name());
                ids.push_back(id.get<std::int32_t>());
            }
        }
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
        const auto& pair = part.list("cls");
        if (pair.size() != 2 || !pair[1].is_number_integer()) part.fail("[text, id] as \"cls\"", pair.dump());
        ids.push_back(pair[1].get<std::int32_t>());
    } else if (type != "ByteLevel") {
        part.unsupported("the post-processor \"" + type + "\"");
    }
    return ids;
}

}  // namespace recto
