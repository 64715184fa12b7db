// Engine::submit: a request becomes a sequence in the queue, or an error that says why not.
#include <algorithm>

#include "engine/engine_state.h"
#include "kernels/error.h"

namespace recto {
namespace {

// vLLM's rule: a word is forbidden as it is written and as it stands after a blank; the second form only
// where the blank changes the first token and not the number of tokens.
std::vector<std::vector<std::int32_t>> word_tokens(const Tokenizer& tokenizer,
                                                   const std::vector<std::string>& words) {
    std::vector<std::vector<std::int32_t>> result;
    const EncodeOptions inner{.add_bos = false, .parse_special = false, .at_start = false};
    for (const std::string& word : words) {
        const auto plain = tokenizer.encode(word, inner);
        if (plain.empty()) continue;
        const auto spaced = tokenizer.encode(" " + word, inner);
        result.push_back(plain);
        if (spaced.size() == plain.size() && spaced.front() != plain.front()) result.push_back(spaced);
    }
    return result;
}

ResolvedSampling resolve(const Request& request, const Tokenizer* tokenizer,
                         const std::vector<std::int32_t>& eos) {
    ResolvedSampling s;
    s.params = request.sampling;
    const SamplingParams& p = s.params;
    if (!tokenizer && !p.stop.empty())
        throw Error(ErrorKind::argument,
                    "stop strings need a tokenizer, and this model has none: use stop_token_ids");
    if (!tokenizer && !p.bad_words.empty())
        throw Error(ErrorKind::argument, "bad_words need a tokenizer, and this model has none");
    if (tokenizer) s.bad_words = word_tokens(*tokenizer, p.bad_words);
    if (!p.ignore_eos && request.keep_default_eos) s.eos = eos;
    s.wants_logprobs = p.logprobs.has_value() || p.best_of.value_or(p.n) > p.n;
    return s;
}

// Consecutive seeds of requests without one must not overlap, whatever n is.
std::uint64_t mixed_seed(std::uint64_t engine_seed, RequestId id) {
    std::uint64_t x = engine_seed + id * 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

}  // namespace

RequestId Engine::State::submit(Request request) {
    request.sampling.check(vocab);
    const auto unstarted = [](const Sequence* s) { return s->phase == SequencePhase::waiting; };
    if (max_waiting > 0 && std::ranges::count_if(scheduler.waiting(), unstarted) >= max_waiting)
        throw Error(ErrorKind::runtime,
                    "the queue is full: max_waiting allows " + std::to_string(max_waiting) +
                        " waiting requests; send this one again later, or raise max_waiting");
    for (std::int32_t id : request.prompt)
        if (id < 0 || id >= step_model->vocab())
            throw Error(ErrorKind::argument, "the prompt's token ids must be in [0, " +
                                                 std::to_string(step_model->vocab() - 1) + "], got " +
                                                 std::to_string(id));
    const auto& keep = request.sampling.truncate_prompt_tokens;
    if (keep && request.prompt.size() > std::size_t(*keep))
        request.prompt.erase(request.prompt.begin(), request.prompt.end() - *keep);

    RequestState r;
    r.sampling = resolve(request, tokenizer, eos_ids);
    const SamplingParams& p = r.sampling.params;
    const std::int64_t limit = scheduler.options().max_model_len;
    const auto prompt_tokens = std::int64_t(request.prompt.size());
    r.max_total_tokens = std::int32_t(p.max_tokens ? std::min(limit, prompt_tokens + *p.max_tokens) : limit);
    r.live = p.use_beam_search ? 1 : p.width();
    r.id = next_request;

    NewSequence n;
    n.request = r.id;
    n.owner = request.owner;
    n.priority = request.priority;
    n.prompt = std::move(request.prompt);
    n.forks = p.width();
    n.beam = p.use_beam_search;
    n.max_total_tokens = r.max_total_tokens;
    n.read_prefix_cache = !p.prompt_logprobs;
    n.prompt_logits = p.prompt_logprobs.has_value();
    Sequence& sequence = scheduler.add(std::move(n));
    ++next_request;

    const std::uint64_t first_seed =
        p.seed && *p.seed != -1 ? std::uint64_t(*p.seed) : mixed_seed(seed, r.id);
    r.outputs.resize(std::size_t(p.width()));
    for (std::size_t i = 0; i < r.outputs.size(); ++i) {
        OutputState& o = r.outputs[i];
        o.seed = first_seed + i;
        if (tokenizer)
            o.text.detokenizer.emplace(
                *tokenizer, DecodeOptions{.skip_special = p.skip_special_tokens,
                                          .spaces_between_special = p.spaces_between_special_tokens});
        o.text.stop_text = StopText(p.stop, p.include_stop_str_in_output);
    }
    r.outputs.front().sequence = &sequence;
    if (p.use_beam_search) {
        r.search.emplace();
        r.search->beams.push_back({.sequence = &sequence, .text_state = r.outputs.front().text});
    }
    if (p.prompt_logprobs) r.prompt_logprobs.emplace_back();  // of the first token: nothing comes before it
    r.metrics.t_request = now();
    r.metrics.prompt_tokens = int(prompt_tokens);
    return requests.emplace(r.id, std::move(r)).first->first;
}

}  // namespace recto
