// A file of results that replaces what stands at its place only when it is whole: it grows beside the place
// as FILE.part (FILE.part2 … where that name is taken) and takes it by close(). A device, a pipe or a link
// has no beside, and is written in place.
#pragma once
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/save/output_folder.h"

namespace recto::cli {

// Error(argument) if `file` is the model, or one of the model's files in its folder: a result
// would take its place.
void refuse_model_file(const std::string& file, const std::filesystem::path& model);

class ResultFile {
  public:
    // Error(runtime) here and below: the file, and the reason that the system gives.
    explicit ResultFile(const std::string& path);
    void write(std::span<const std::byte> bytes) { out_->write(bytes); }
    void write(std::string_view text) { out_->write(text); }
    void close();
    ~ResultFile();  // takes away what was not closed
    ResultFile(const ResultFile&) = delete;
    ResultFile& operator=(const ResultFile&) = delete;

  private:
    std::string place_, growing_;  // the same where it is written in place
    std::optional<OutputFile> out_;
    bool whole_ = false;
};

}  // namespace recto::cli
