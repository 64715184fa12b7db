// The rules of beam search, apart from where its beams live (vLLM V0, engine/llm_engine.py):
//   every beam proposes its 2 · width most probable tokens; of all proposals the 2 · width best count; those
//   that end the answer join the finished ones (of which the best `width` are kept), the best `width` others
//   go on.
// A score is the cumulative log probability over length ^ length_penalty, the length being that of prompt
// *and* output, without an EOS at the end. (Hugging Face's generate() counts the output alone, so that the
// same length_penalty ranks differently there.)
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/sample/sampling_params.h"
#include "engine/sample/token_logprob.h"

namespace recto {

// A token that a beam proposes.
struct BeamProposal {
    std::int32_t token = -1;
    double logprob = 0;                  // of the distribution after masks and penalties
    std::vector<TokenLogprob> reported;  // with SamplingParams::logprobs: of the model's own distribution
};

struct BeamCandidate {
    std::size_t beam = 0;      // index of the one that proposes it
    std::size_t proposal = 0;  // index into its proposals
    double cumulative = 0;     // log probability of the whole answer
};

struct BeamProposals {  // of one running beam
    double cumulative = 0;
    std::span<const BeamProposal> proposals;
};

// The `count` best of all, best first; equal ones in the order of beams and proposals.
std::vector<BeamCandidate> best_candidates(std::span<const BeamProposals> beams, std::size_t count);

double beam_score(double cumulative, std::int64_t length, double length_penalty);

// Whether the search ends although beams could go on. `worst_finished`: the score of the width-th best
// finished answer, there being as many. The best running beam has `cumulative` and `length`; `longest` is the
// greatest length that it can reach.
bool beam_search_ends(const SamplingParams& params, double worst_finished, double cumulative,
                      std::int64_t length, std::int64_t longest);

}  // namespace recto
