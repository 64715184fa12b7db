// What the tests of model files share: a scratch folder, bytes put together by hand, and the check of a
// refusal.
#pragma once
#include <QTemporaryDir>
#include <QTest>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/error.h"

namespace recto::test {

// Bytes of a file, appended one after the other.
class Bytes {
  public:
    template <class T>
    Bytes& put(T value) {
        text_.append(reinterpret_cast<const char*>(&value), sizeof value);
        return *this;
    }
    Bytes& raw(std::string_view bytes) {
        text_ += bytes;
        return *this;
    }
    Bytes& string(std::string_view text) {
        return put<std::uint64_t>(text.size()).raw(text);
    }  // as GGUF has it
    Bytes& pad_to(std::size_t multiple) {
        while (text_.size() % multiple != 0)
            text_ += '\0';
        return *this;
    }
    const std::string& text() const { return text_; }
    std::size_t size() const { return text_.size(); }

  private:
    std::string text_;
};

inline std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

class Scratch {
  public:
    std::filesystem::path path() const { return folder_.path().toStdString(); }
    std::filesystem::path write(const std::string& name, std::string_view content) const {
        const auto file = path() / name;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file, std::ios::binary) << content;
        return file;
    }

  private:
    QTemporaryDir folder_;
};

// The sentence of the Error(input) that `act` throws; empty with a failed test if it throws none or another
// kind.
inline std::string refusal(const std::function<void()>& act) {
    try {
        act();
    } catch (const Error& error) {
        if (error.kind() == ErrorKind::input) return error.what();
        QTest::qFail((std::string("an error of another kind: ") + error.what()).c_str(), __FILE__, __LINE__);
        return {};
    }
    QTest::qFail("nothing was refused", __FILE__, __LINE__);
    return {};
}

// A refusal that names the file first and says `fragment`, in one line of readable length.
inline void check_refusal(const std::function<void()>& act, const std::string& label,
                          const std::string& fragment) {
    const std::string sentence = refusal(act);
    const bool good = sentence.starts_with(label) && sentence.find(fragment) != std::string::npos &&
                      sentence.find('\n') == std::string::npos && sentence.size() < 600;
    QVERIFY2(good, ("expected \"" + label + ": … " + fragment + " …\", got \"" + sentence + "\"").c_str());
}

// Largest single allocation of this thread since the probe was made.
class AllocationProbe {
  public:
    AllocationProbe();
    std::size_t largest_bytes() const;
};

}  // namespace recto::test
