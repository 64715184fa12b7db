#include "engine/text/gguf_pre.h"

#include <map>

#include "engine/text/pre_tokenizer.h"
#include "kernels/error.h"

namespace recto {

namespace {

using Patterns = std::vector<std::string>;

// Llama 3's shape: contractions, a word with one leading sign, digits, signs with line ends, line ends,
// blanks. `digits` is what differs between families.
std::string llama3_shape(const std::string& digits) {
    return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)" + digits +
           R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

// Words change at a change of case (tekken, GPT-4o); `ending` may add contractions.
std::string cased_shape(const std::string& ending, const std::string& digits) {
    return R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" + ending +
           R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" + ending + "|" +
           digits + R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

constexpr const char* kContraction = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)";

const Patterns kLlama3 = {llama3_shape(R"(\p{N}{1,3})")};
const Patterns kQwen2 = {llama3_shape(R"(\p{N})")};
const Patterns kGpt2 = {kGpt2Pattern};
const Patterns kSingleDigits = {R"(\p{N})", kGpt2Pattern};
const Patterns kGpt4o = {cased_shape(kContraction, R"(\p{N}{1,3})")};
const Patterns kTekken = {cased_shape("", R"(\p{N})")};
// A run of blanks before anything else cannot end a word: said so, the search stays linear in the run's
// length.
constexpr const char* kBlanksAtEnd = R"((?<!\s)\s+\z)";
constexpr const char* kCjk = R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";

const Patterns kDeepseekLlm = {
    R"([\r\n])",
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-)"
    R"(\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-)"
    R"(\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-)"
    R"(\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77})"
    R"(\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-)"
    R"(\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE})"
    R"(\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-)"
    R"(\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124})"
    R"(\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149})"
    R"(\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3})"
    R"(\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-)"
    R"(\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F})"
    R"(\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF})"
    R"(\x{1E900}-\x{1E943}]+)",
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
    kBlanksAtEnd,
    kCjk,
    R"(\p{N}+)",
};
const Patterns kDeepseekCoder = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kCjk, R"(\p{N})"};
const Patterns kDeepseekV3 = {
    R"(\p{N}{1,3})",
    R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
};
const Patterns kFalcon = {R"([\p{P}$+<=>^`|~]+)", kGpt2Pattern, "[0-9][0-9][0-9]"};
const Patterns kDefault = {R"([\p{P}$+<=>^|~]+)", kGpt2Pattern, R"(\p{N}+)", "[0-9][0-9][0-9]"};

const std::map<std::string, GgufPreTokenizer>& table() {
    static const std::map<std::string, GgufPreTokenizer> kTable = [] {
        std::map<std::string, GgufPreTokenizer> t;
        const auto add = [&t](std::initializer_list<const char*> names, const GgufPreTokenizer& pre) {
            for (const char* name : names)
                t.emplace(name, pre);
        };
        add({"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"},
            {kLlama3, true, false});
        add({"dbrx", "smaug-bpe"}, {kLlama3, false, false});
        add({"qwen2"}, {kQwen2, false, true});
        add({"deepseek-r1-qwen", "megrez"}, {kQwen2, false, false});
        add({"stablelm2"}, {kQwen2, false, false});
        add({"smollm", "starcoder", "refact", "command-r", "codeshell", "minerva-7b", "exaone"},
            {kSingleDigits, false, false});
        add({"gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0",
             "mellum", "mpt", "olmo", "jais"},
            {kGpt2, false, false});
        add({"gpt-4o", "llama4"}, {kGpt4o, false, false});
        add({"tekken"}, {kTekken, true, false});
        add({"deepseek-llm"}, {kDeepseekLlm, false, false});
        add({"deepseek-coder"}, {kDeepseekCoder, false, false});
        add({"deepseek-v3"}, {kDeepseekV3, false, false});
        add({"falcon"}, {kFalcon, false, false});
        add({"default"}, {kDefault, false, false});
        return t;
    }();
    return kTable;
}

}  // namespace

GgufPreTokenizer gguf_pre_tokenizer(const std::string& name, const std::string& label) {
    const auto found = table().find(name);
    if (found != table().end()) return found->second;
    std::string known;
    for (const auto& [key, value] : table())
        known += (known.empty() ? "" : ", ") + key;
    throw Error(ErrorKind::input, label + ": expected a known pre-tokenizer in tokenizer.ggml.pre (" + known +
                                      "), found " + (name.empty() ? "none" : "\"" + name + "\"") +
                                      ": use a newer conversion or a tokenizer.json of this model.");
}

}  // namespace recto
