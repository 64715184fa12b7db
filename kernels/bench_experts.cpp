// Timings of mixtures of experts.
#include <algorithm>
#include <set>

#include "kernels/bench_print.h"
#include "kernels/synthetic.h"

namespace recto {

namespace {

struct Mixture {
    const char* name;
    int experts, per_row;
    std::int64_t hidden, width;
};
constexpr Mixture mixtures[] = {
    {"experts 8 of 64, Q4_K 2048x768", 64, 8, 2048, 768},
    {"experts 2 of 8, Q4_K 4096x14336", 8, 2, 4096, 14336},
};
constexpr int row_counts[] = {1, 4, 16, 128, 512};
constexpr int choices = 16;  // taken in turn

class MixtureBench {
  public:
    MixtureBench(Backend& backend, const Mixture& m)
        : backend_(backend), m_(m), activation_(backend.activation_dtype(DType::f16)) {
        const WeightForm q4_k =
            grouped_form(QuantInt::u4, 32, ScaleForm::f16_times_u6, OffsetForm::f16_times_u6, "Q4_K");
        const FilledRows half(m.width, m.hidden, q4_k), down(m.hidden, m.width, q4_k);
        const WeightRows* gate_up_parts[] = {&half, &half};
        const WeightRows* down_parts[] = {&down};
        std::vector<std::unique_ptr<PackedWeight>> gate_ups, downs;
        for (int e = 0; e < m.experts; ++e) {
            PackOptions options(Activations::int8, activation_, true);
            options.expert = true;
            gate_ups.push_back(backend.pack(gate_up_parts, options));
            options.gated = false;
            downs.push_back(backend.pack(down_parts, options));
        }
        gate_up_ = backend.stack_experts(std::move(gate_ups));
        down_ = backend.stack_experts(std::move(downs));
    }

    double bytes_of_expert() const { return double(gate_up_->bytes() + down_->bytes()) / m_.experts; }

    void prepare(std::int64_t rows) {
        rows_ = rows;
        const std::int64_t slots = rows * m_.per_row;
        x_ = tensor(0, rows, m_.hidden, 1.0F, activation_);
        out_ = tensor(1, rows, m_.hidden, 1.0F);
        gated_ = tensor(2, slots, m_.width, 1.0F, activation_);
        logits_ = tensor(3, rows * choices, m_.experts, 4.0F);
        ids_ = tensor(4, slots * choices, 1, 0.0F);
        weights_ = tensor(5, slots * choices, 1, 0.0F);
        for (int c = 0; c < choices; ++c)
            route(c);
        std::vector<std::int32_t> ids(std::size_t(slots * choices));
        backend_.download(ids.data(), ids_.data, ids.size() * sizeof(std::int32_t));
        used_ = 0;
        for (int c = 0; c < choices; ++c)
            used_ +=
                double(std::set<std::int32_t>(ids.begin() + c * slots, ids.begin() + (c + 1) * slots).size());
        used_ /= choices;
    }
    double used_experts() const { return used_; }  // a call, on average

    void route(int c) {
        Tensor part = logits_;
        part.data = logits_.f32() + c * rows_ * m_.experts;
        part.rows = rows_;
        backend_.route(part, true, choice(c));
    }
    void gate_up(int c) { backend_.expert_gate_up(x_, choice(c), *gate_up_, Epilogue::silu_mul, gated_); }
    void down(int c) { backend_.expert_down(gated_, choice(c), *down_, out_); }
    double gate_up_share() const {
        return double(gate_up_->bytes()) / double(gate_up_->bytes() + down_->bytes());
    }

  private:
    ExpertChoice choice(int c) const {
        const std::int64_t first = c * rows_ * m_.per_row;
        return {static_cast<std::int32_t*>(ids_.data) + first, weights_.f32() + first, rows_, m_.per_row};
    }
    Tensor tensor(std::size_t place, std::int64_t rows, std::int64_t cols, float amplitude, DType dtype = DType::f32) {
        if (buffers_.size() <= place) buffers_.resize(place + 1);
        buffers_[place] = backend_.allocate(std::size_t(rows * cols) * dtype_bytes(dtype));
        const std::vector<float> v = random_floats(std::size_t(rows * cols), amplitude, 20 + place);
        if (dtype == DType::f32) {
            backend_.upload(buffers_[place]->data(), v.data(), v.size() * sizeof(float));
        } else {
            std::vector<std::uint16_t> half(v.size());
            std::ranges::transform(v, half.begin(), f32_to_f16);
            backend_.upload(buffers_[place]->data(), half.data(), half.size() * 2);
        }
        return {buffers_[place]->data(), dtype, rows, cols, cols};
    }

    Backend& backend_;
    Mixture m_;
    DType activation_;
    std::unique_ptr<PackedExperts> gate_up_, down_;
    std::vector<std::unique_ptr<Buffer>> buffers_;
    std::int64_t rows_ = 0;
    double used_ = 0;
    Tensor x_, out_, gated_, logits_, ids_, weights_;
};

}  // namespace

void bench_experts(Backend& backend, const std::string& filter, const Printer& print) {
    for (const Mixture& m : mixtures) {
        std::unique_ptr<MixtureBench> bench;
        for (const int rows : row_counts) {
            const std::string name = std::string(m.name) + ", rows " + std::to_string(rows);
            const double ops = 6.0 * rows * m.per_row * double(m.hidden) * double(m.width);
            bool prepared = false;
            auto line = [&](const std::string& part, auto op, auto bytes, double share_of_ops) {
                const std::string whole = name + ": " + part;
                if (!filter.empty() && whole.find(filter) == std::string::npos) return;
                if (!bench) bench = std::make_unique<MixtureBench>(backend, m);
                if (!prepared) bench->prepare(rows);
                prepared = true;
                int turn = 0;
                const double seconds = time_of(backend, [&] {
                    const int c = turn++ % choices;
                    backend.run({}, [&] { op(*bench, c); });
                });
                print.line(whole, seconds, bytes(*bench), ops * share_of_ops, share_of_ops > 0);
            };
            auto expert_bytes = [](const MixtureBench& b) { return b.bytes_of_expert() * b.used_experts(); };
            line(
                "gate_up", [](MixtureBench& b, int c) { b.gate_up(c); },
                [&](const MixtureBench& b) { return expert_bytes(b) * b.gate_up_share(); }, 2.0 / 3);
            line(
                "down", [](MixtureBench& b, int c) { b.down(c); },
                [&](const MixtureBench& b) { return expert_bytes(b) * (1 - b.gate_up_share()); }, 1.0 / 3);
            line(
                "route", [](MixtureBench& b, int c) { b.route(c); },
                [&](const MixtureBench&) { return double(rows * m.experts) * 4; }, 0);
        }
    }
}

}  // namespace recto
