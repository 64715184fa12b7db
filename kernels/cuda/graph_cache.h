// Captured graphs by key. They hold addresses: of a batch's arrays, with which the cache lives, and of
// scratch memory, whose moving makes a new generation.
#pragma once
#include <cuda_runtime.h>

#include <vector>

#include "kernels/backend.h"

namespace recto::cuda {

class GraphCache {
  public:
    GraphCache() = default;
    ~GraphCache() { clear(); }
    GraphCache(const GraphCache&) = delete;
    GraphCache& operator=(const GraphCache&) = delete;

    // `reads_much`: of the step's attention, which is launched otherwise then. Null: none yet.
    cudaGraphExec_t find(const GraphKey& key, bool reads_much, unsigned generation) {
        if (generation != generation_) clear();
        generation_ = generation;
        for (const Graph& g : graphs_)
            if (g.key == key && g.reads_much == reads_much) return g.exec;
        return nullptr;
    }
    void keep(const GraphKey& key, bool reads_much, cudaGraphExec_t graph) {
        graphs_.push_back({key, reads_much, graph});
    }

  private:
    struct Graph {
        GraphKey key;
        bool reads_much = false;
        cudaGraphExec_t exec = nullptr;
    };
    void clear() {
        for (const Graph& g : graphs_)
            cudaGraphExecDestroy(g.exec);
        graphs_.clear();
    }

    std::vector<Graph> graphs_;  // few: one or two a decode bucket
    unsigned generation_ = 0;
};

}  // namespace recto::cuda
