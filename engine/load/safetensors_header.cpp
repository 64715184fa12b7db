#include "engine/load/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <set>

#include "engine/load/refuse.h"

namespace recto {

namespace {

// Receives the tokens of the header. Levels: 0 outside, 1 the header's object, 2 an entry or __metadata__,
// 3 a list in an entry. Members that are not known are skipped, whatever they hold.
class HeaderSax final : public nlohmann::json_sax<nlohmann::json> {
  public:
    explicit HeaderSax(const std::string& label) : label_(label) {}
    std::vector<SafetensorsEntry> take_entries() { return std::move(entries_); }

    bool null() override {
        // The reference library takes a null for "no metadata".
        return skipping_ > 0 || unknown_member() || (level_ == 1 && in_metadata_) || unexpected("null");
    }
    bool boolean(bool) override { return skipping_ > 0 || unknown_member() || unexpected("true or false"); }
    bool number_integer(number_integer_t value) override {
        if (skipping_ > 0 || unknown_member()) return true;
        if (value < 0) bad("holds the negative number " + std::to_string(value));
        return unsigned_number(std::uint64_t(value));
    }
    bool number_unsigned(number_unsigned_t value) override {
        return skipping_ > 0 || unknown_member() || unsigned_number(value);
    }
    bool number_float(number_float_t, const string_t& text) override {
        return skipping_ > 0 || unknown_member() || unexpected(text);
    }
    bool binary(binary_t&) override { return unexpected("binary data"); }

    bool string(string_t& value) override {
        if (skipping_ > 0 || unknown_member()) return true;
        if (level_ == 2 && in_metadata_) return true;
        if (level_ == 2 && field_ == "dtype") {
            entries_.back().dtype = value;
            return true;
        }
        return unexpected("the string " + shown(value));
    }

    bool start_object(std::size_t) override {
        if (skipping_ > 0 || unknown_member()) return skip_deeper();
        if (level_ == 2 || level_ == 3) return unexpected("an object");
        ++level_;
        return true;
    }
    bool end_object() override {
        if (skipping_ > 0) {
            --skipping_;
            return true;
        }
        if (level_ == 2 && !in_metadata_) finish_entry();
        --level_;
        return true;
    }
    bool start_array(std::size_t) override {
        if (skipping_ > 0 || unknown_member()) return skip_deeper();
        if (level_ != 2 || in_metadata_ || field_ == "dtype") return unexpected("a list");
        ++level_;
        return true;
    }
    bool end_array() override {
        if (skipping_ > 0) {
            --skipping_;
        } else {
            --level_;
        }
        return true;
    }

    bool key(string_t& name) override {
        if (skipping_ > 0) return true;
        if (level_ == 1) {
            if (!names_.insert(name).second)
                refuse(label_, "the name " + shown(name) + " occurs twice in its header");
            in_metadata_ = name == "__metadata__";
            fields_.clear();
            field_.clear();
            if (!in_metadata_) entries_.emplace_back().name = name;
        } else {
            if (!fields_.insert(name).second) bad("has the key " + shown(name) + " twice");
            field_ = name;
        }
        return true;
    }

    bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
        refuse(label_,
               "its header should be valid JSON, reading it fails at byte " + std::to_string(position));
    }

  private:
    bool unknown_member() const {
        return level_ == 2 && !in_metadata_ && field_ != "dtype" && field_ != "shape" &&
               field_ != "data_offsets";
    }
    bool skip_deeper() {
        if (++skipping_ > 100) refuse(label_, "its header is nested more than 100 deep");
        return true;
    }
    [[noreturn]] void bad(const std::string& what) const {
        const std::string where = in_metadata_       ? "\"__metadata__\""
                                  : entries_.empty() ? "the object"
                                                     : "the entry of " + shown(entries_.back().name);
        refuse(label_, "in its header " + where + " " + what);
    }
    [[noreturn]] bool unexpected(const std::string& what) const {
        if (level_ == 0) refuse(label_, "its header should be a JSON object, found " + what);
        bad("should hold " +
            std::string(in_metadata_        ? "strings"
                        : level_ == 1       ? "an object"
                        : field_ == "dtype" ? "a string as dtype"
                                            : "a list of whole numbers as " + field_) +
            ", found " + what);
    }
    bool unsigned_number(std::uint64_t value) {
        if (level_ != 3) return unexpected("the number " + std::to_string(value));
        auto& entry = entries_.back();
        (field_ == "shape" ? entry.shape : entry.offsets).push_back(value);
        return true;
    }
    void finish_entry() {
        for (const char* field : {"dtype", "shape", "data_offsets"})
            if (!fields_.contains(field)) bad(std::string("has no ") + field);
        if (entries_.back().offsets.size() != 2)
            bad("should hold two data_offsets, found " + std::to_string(entries_.back().offsets.size()));
    }

    const std::string& label_;
    std::vector<SafetensorsEntry> entries_;
    std::set<std::string> names_, fields_;
    std::string field_;
    bool in_metadata_ = false;
    int level_ = 0;
    int skipping_ = 0;  // depth inside the value of an unknown member
};

}  // namespace

std::vector<SafetensorsEntry> read_safetensors_header(std::string_view json, const std::string& label) {
    // The parser would skip a byte order mark and take a zero byte for the end.
    if (json.starts_with("\xEF\xBB\xBF") || json.find('\0') != std::string_view::npos)
        refuse(label, "its header should be valid JSON, it has a byte order mark or a zero byte");
    HeaderSax sax(label);
    (void)nlohmann::json::sax_parse(json.begin(), json.end(), &sax);  // errors leave through parse_error()
    return sax.take_entries();
}

}  // namespace recto
