#include "engine/sample/beam_search.h"

#include <algorithm>
#include <cmath>

namespace recto {

std::vector<BeamCandidate> best_candidates(std::span<const BeamProposals> beams, std::size_t count) {
    std::vector<BeamCandidate> all;
    for (std::size_t b = 0; b < beams.size(); ++b)
        for (std::size_t p = 0; p < beams[b].proposals.size(); ++p)
            all.push_back({b, p, beams[b].cumulative + beams[b].proposals[p].logprob});
    std::ranges::stable_sort(
        all, [](const BeamCandidate& x, const BeamCandidate& y) { return x.cumulative > y.cumulative; });
    if (all.size() > count) all.resize(count);
    return all;
}

double beam_score(double cumulative, std::int64_t length, double length_penalty) {
    return cumulative / std::pow(double(std::max<std::int64_t>(length, 1)), length_penalty);
}

bool beam_search_ends(const SamplingParams& params, double worst_finished, double cumulative,
                      std::int64_t length, std::int64_t longest) {
    switch (params.early_stopping) {
        case EarlyStopping::yes:
            return true;
        case EarlyStopping::no:
            return worst_finished >= beam_score(cumulative, length, params.length_penalty);
        case EarlyStopping::never:
            break;
    }
    const std::int64_t reachable = params.length_penalty > 0 ? longest : length;
    return worst_finished >= beam_score(cumulative, reachable, params.length_penalty);
}

}  // namespace recto
