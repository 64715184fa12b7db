// Processor time of this process: limits of linear time hold on a busy machine too.
#pragma once
#include <ctime>

namespace recto::test {

class CpuTimer {
  public:
    double elapsed_s() const { return static_cast<double>(std::clock() - begin_) / CLOCKS_PER_SEC; }

  private:
    std::clock_t begin_ = std::clock();
};

}  // namespace recto::test
