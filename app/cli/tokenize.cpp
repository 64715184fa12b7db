// tokenize and detokenize: text ↔ ids, also with a vocabulary-only file.
#include <iostream>

#include "app/cli/common.h"
#include "kernels/error.h"

namespace recto::cli {
namespace {

struct TokenizeOptions {
    CommonOptions common;  // only the model and --json matter here; a script may pass the rest along
    std::string text, file, ids;
    bool special = false, no_bos = false;
};

std::unique_ptr<Tokenizer> open_tokenizer(const CommonOptions& common) {
    return make_tokenizer(open_tokenizer_files(model_path(common)));
}

int tokenize(const TokenizeOptions& o, bool text_given, bool file_given) {
    if (text_given == file_given)
        throw Error(ErrorKind::argument, "tokenize needs --text T or --file F, one of the two");
    EncodeOptions encode;
    encode.parse_special = o.special;
    encode.add_bos = !o.no_bos;
    const auto tokenizer = open_tokenizer(o.common);
    const Json ids = tokenizer->encode(file_given ? read_file(o.file) : o.text, encode);
    std::cout << ids.dump() << '\n';
    return exit_done;
}

std::vector<std::int32_t> parse_ids(const std::string& text, const std::string& where, ErrorKind kind) {
    std::string list = text;
    if (list.find('[') == std::string::npos) list = "[" + list + "]";
    return token_ids(parse_value(list), where, kind);
}

int detokenize(const TokenizeOptions& o, bool ids_given, bool file_given) {
    if (ids_given == file_given)
        throw Error(ErrorKind::argument, "detokenize needs --ids 1,2,… or --file F, one of the two");
    const auto tokenizer = open_tokenizer(o.common);
    const std::vector<std::int32_t> ids = file_given ? parse_ids(read_file(o.file), o.file, ErrorKind::input)
                                                     : parse_ids(o.ids, "--ids", ErrorKind::argument);
    for (const std::int32_t id : ids)
        if (id < 0 || id >= tokenizer->size())
            throw Error(file_given ? ErrorKind::input : ErrorKind::argument,
                        (file_given ? o.file : "--ids") + ": expected token ids from 0 to " +
                            std::to_string(tokenizer->size() - 1) + ", found " + std::to_string(id));
    DecodeOptions decode_options;
    decode_options.skip_special = !o.special;
    decode_options.at_start = true;
    decode_options.spaces_between_special = false;  // the ids back to the text they came from
    const std::string text = decode(*tokenizer, ids, decode_options);
    std::cout << (o.common.json ? Json(text).dump() : text) << '\n';
    return exit_done;
}

}  // namespace

void add_tokenize(CLI::App& app, int& code) {
    auto options = std::make_shared<TokenizeOptions>();
    CLI::App* encode = app.add_subcommand("tokenize", "Text to a JSON array of token ids");
    add_common_options(*encode, options->common);
    auto* text = encode->add_option("--text", options->text, "the text");
    auto* file = encode->add_option("--file", options->file, "a file with the text; - is standard input");
    encode->add_flag("--special", options->special, "spellings of control tokens become those tokens");
    encode->add_flag("--no-bos", options->no_bos, "no beginning-of-text token");
    encode->callback([=, &code] { code = tokenize(*options, text->count() > 0, file->count() > 0); });

    auto back = std::make_shared<TokenizeOptions>();
    CLI::App* decode = app.add_subcommand("detokenize", "Token ids to text");
    add_common_options(*decode, back->common);
    auto* ids = decode->add_option("--ids", back->ids, "ids as 1,2,3 or a JSON array");
    auto* ids_file = decode->add_option("--file", back->file, "a file with them; - is standard input");
    decode->add_flag("--special", back->special, "print control tokens too");
    decode->callback([=, &code] { code = detokenize(*back, ids->count() > 0, ids_file->count() > 0); });
}

}  // namespace recto::cli
