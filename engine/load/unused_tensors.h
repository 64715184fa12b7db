// What a model's files hold and no reader takes: a person should know where a part of a checkpoint is left
// out.
#pragma once
#include <set>
#include <string>
#include <vector>

namespace recto {

class TensorUse {
  public:
    void tensor(std::string name) { tensors_.insert(std::move(name)); }
    // All that "module.…" has, whatever form its weight is in; a bias only if it is asked for by name.
    void module(std::string name) { modules_.insert(std::move(name)); }

    // One sentence: how many of `names` are not used, and one of them; of what layers, where they lie beyond
    // the `layers` of the configuration. Empty if all are. Tables of RoPE's frequencies, which follow from
    // the configuration, do not count.
    std::string note(const std::string& label, const std::vector<std::string>& names, int layers) const;

  private:
    bool uses(const std::string& name) const;

    std::set<std::string> tensors_, modules_;
};

}  // namespace recto
