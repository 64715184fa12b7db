// The one exception that crosses a public boundary of Recto. A broken invariant asserts instead.
#pragma once
#include <stdexcept>
#include <string>

namespace recto {

// What went wrong, in the terms of the command line's exit codes.
enum class ErrorKind {
    runtime,    // 1: a failure while working (device, disk, network)
    argument,   // 2: a value that the caller chose is out of its range
    input,      // 3: a model or input file is bad or unsupported
    memory,     // 4: not enough memory; never reported as anything else
    cancelled,  // 130: the person stopped it
};

// `what()` is one sentence a person can act on: what was expected, what was found, what to do.
// For files it begins with the path: "FILE: what was expected, what was found".
class Error : public std::runtime_error {
  public:
    Error(ErrorKind kind, const std::string& sentence) : std::runtime_error(sentence), kind_(kind) {}
    ErrorKind kind() const noexcept { return kind_; }

  private:
    ErrorKind kind_;
};

}  // namespace recto
