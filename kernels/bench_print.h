// What the timings of kernels share: a clock, a table's line, and weights that cost nothing to read.
#pragma once
#include <algorithm>
#include <chrono>
#include <functional>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/bench.h"

namespace recto {

// Median seconds of one call, over at least 5 calls and about `budget` seconds.
inline double time_of(Backend& backend, const std::function<void()>& work, double budget = 0.4) {
    work();
    backend.synchronize();
    std::vector<double> times;
    double total = 0;
    while (times.size() < 5 || (total < budget && times.size() < 1000)) {
        const auto start = std::chrono::steady_clock::now();
        work();
        backend.synchronize();
        times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        total += times.back();
    }
    std::nth_element(times.begin(), times.begin() + std::ptrdiff_t(times.size() / 2), times.end());
    return times[times.size() / 2];
}

struct Printer {
    std::ostream& out;
    Ceilings top;
    int& lines;  // printed so far
    void line(const std::string& name, double seconds, double bytes, double ops, bool integer,
              const std::string& extra = "") const {
        ++lines;
        std::ostringstream s;
        s << std::left << std::setw(44) << name << std::right << std::fixed << std::setprecision(1)
          << std::setw(10) << seconds * 1e6 << " us" << std::setw(8) << bytes / seconds * 1e-9 << " GB/s";
        if (top.read_bytes_s > 0)
            s << std::setw(4) << std::setprecision(0) << 100 * bytes / seconds / top.read_bytes_s << " %";
        s << std::setw(8) << std::setprecision(3) << ops / seconds * 1e-12 << " TOP/s";
        const double peak = integer ? top.int8_ops_s : top.fp32_ops_s;
        if (peak > 0) s << std::setw(4) << std::setprecision(0) << 100 * ops / seconds / peak << " %";
        out << s.str() << (extra.empty() ? "" : "  ") << extra << std::endl;
    }
};

// Grouped weights of one value a plane.
class FilledRows final : public WeightRows {
  public:
    FilledRows(std::int64_t rows, std::int64_t cols, const WeightForm& form)
        : rows_(rows), cols_(cols), form_(form) {}
    std::int64_t rows() const override { return rows_; }
    std::int64_t cols() const override { return cols_; }
    const WeightForm& form() const override { return form_; }
    void read(std::int64_t first, std::int64_t count, const WeightPlanes& out) const override {
        const std::int64_t groups = count * cols_ / form_.group_size, supers = count * cols_ / super_group;
        if (out.q != nullptr) std::fill_n(out.q, count * cols_, std::uint8_t(first & 15));
        if (out.scale != nullptr) std::fill_n(out.scale, groups, 0.5F);
        if (out.offset != nullptr) std::fill_n(out.offset, groups, -1.0F);
        if (out.super_scale != nullptr) std::fill_n(out.super_scale, supers, f32_to_f16(0.0625F));
        if (out.scale_factor != nullptr) std::fill_n(out.scale_factor, groups, std::int8_t(8));
        if (out.super_offset != nullptr) std::fill_n(out.super_offset, supers, f32_to_f16(0.25F));
        if (out.offset_factor != nullptr) std::fill_n(out.offset_factor, groups, std::uint8_t(4));
        if (out.zero_point != nullptr) std::fill_n(out.zero_point, groups, std::uint8_t(8));
    }
    void read_f32(std::int64_t, std::int64_t count, float* out) const override {
        std::fill_n(out, count * cols_, 0.0F);
    }
    void read_dense(std::int64_t, std::int64_t, void*) const override {}

  private:
    std::int64_t rows_, cols_;
    WeightForm form_;
};

// Linears of a model of a billion weights for one row, over more layers than a cache holds.
void bench_large(Backend& backend, const std::string& filter, const Printer& print);

// Bytes a second of a copy of 2 GiB on the device, read and written counted: what a card's timings are held
// against.
double copy_rate(Backend& backend);

// The products of a 7B layer on a card, one row to thousands.
void bench_card(Backend& backend, const std::string& filter, const Printer& print);

// One layer of Qwen3-30B-A3B's and of Mixtral's shape. Rows of every call choose other experts, so that
// weights come from memory as they do in a model.
void bench_experts(Backend& backend, const std::string& filter, const Printer& print);

// Drawing tokens and sending steps, on a device that does both (Backend::asynchronous).
void bench_draw(Backend& backend, const std::string& filter, const Printer& print);

// Paged attention of one layer at a card's sizes.
void bench_attention(Backend& backend, const std::string& filter, const Printer& print);

}  // namespace recto
