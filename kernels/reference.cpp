#include "kernels/reference.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace recto::reference {

std::vector<double> quantized_activations(const float* x, std::int64_t rows, std::int64_t cols) {
    std::vector<double> out(std::size_t(rows * cols));
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t begin = 0; begin < cols; begin += 32) {
            const std::int64_t end = begin + 32 < cols ? begin + 32 : cols;
            float largest = 0;
            for (std::int64_t k = begin; k < end; ++k)
                largest = std::fmax(largest, std::fabs(x[r * cols + k]));
            const float scale = largest / 127.0F;
            const float inverse = largest > 0 ? 127.0F / largest : 0.0F;
            for (std::int64_t k = begin; k < end; ++k) {
                out[std::size_t(r * cols + k)] =
                    double(std::nearbyint(x[r * cols + k] * inverse)) * double(scale);
            }
        }
    }
    return out;
}

std::vector<double> twice_quantized_activations(const float* x, std::int64_t rows, std::int64_t cols) {
    std::vector<double> sum = quantized_activations(x, rows, cols);
    std::vector<float> left(sum.size());
    // scale · q is rounded to FP32 before it is taken off, as the kernels do.
    for (std::size_t i = 0; i < sum.size(); ++i)
        left[i] = x[i] - float(sum[i]);
    const std::vector<double> second = quantized_activations(left.data(), rows, cols);
    for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] += second[i];
    return sum;
}

namespace {

std::vector<double> as_kernels_see(const std::vector<float>& row, Activations mode) {
    const auto cols = std::int64_t(row.size());
    switch (mode) {
        case Activations::int8:
            return quantized_activations(row.data(), 1, cols);
        case Activations::int8_twice:
            return twice_quantized_activations(row.data(), 1, cols);
        case Activations::floating:
            break;
        case Activations::token_fp8:  // their weights are rounded too: check_activations_8.cpp
        case Activations::token_int8:
            assert(false);
    }
    return {row.begin(), row.end()};
}

double gate(double x, Epilogue kind) {
    if (kind == Epilogue::silu_mul) return x / (1.0 + std::exp(-x));
    return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

}  // namespace

LinearResult linear(const float* x, std::int64_t rows, std::span<const WeightRows* const> parts,
                    Activations mode, Epilogue epilogue, const float* before) {
    const std::int64_t cols = parts[0]->cols();
    std::int64_t outputs = 0;
    for (const WeightRows* w : parts)
        outputs += w->rows();
    std::vector<double> full(std::size_t(rows * outputs)), size(full.size());
    std::int64_t first = 0;
    std::vector<float> w_row(static_cast<std::size_t>(cols)), input(static_cast<std::size_t>(cols));
    for (const WeightRows* w : parts) {
        const Activations seen = w->form().grouped ? mode : Activations::floating;
        const auto order = w->input_permutation();
        std::vector<double> in(static_cast<std::size_t>(rows * cols));
        for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t k = 0; k < cols; ++k) {
                input[std::size_t(k)] = x[r * cols + (order.empty() ? k : order[std::size_t(k)])];
            }
            const std::vector<double> q = as_kernels_see(input, seen);
            std::copy(q.begin(), q.end(), in.begin() + r * cols);
        }
        const bool grouped = w->form().grouped;
        const std::int64_t group = grouped ? w->form().group_size : 1;
        std::vector<float> offset(static_cast<std::size_t>(cols / group));
        for (std::int64_t o = 0; o < w->rows(); ++o) {
            w->read_f32(o, 1, w_row.data());
            if (grouped) {
                WeightPlanes planes;
                planes.offset = offset.data();
                w->read(o, 1, planes);
            }
            for (std::int64_t r = 0; r < rows; ++r) {
                double sum = w->bias().empty() ? 0.0 : double(w->bias()[std::size_t(o)]);
                double absolute = std::fabs(sum);
                for (std::int64_t k = 0; k < cols; ++k) {
                    const double v = double(w_row[std::size_t(k)]), x_k = in[std::size_t(r * cols + k)];
                    // Kernels may sum scale · q and offset apart.
                    const double m = grouped ? double(offset[std::size_t(k / group)]) : 0.0;
                    sum += v * x_k;
                    absolute += (std::fabs(v - m) + std::fabs(m)) * std::fabs(x_k);
                }
                full[std::size_t(r * outputs + first + o)] = sum;
                size[std::size_t(r * outputs + first + o)] = absolute;
            }
        }
        first += w->rows();
    }
    LinearResult result;
    if (epilogue == Epilogue::store || epilogue == Epilogue::add) {
        if (epilogue == Epilogue::add) {
            for (std::size_t i = 0; i < full.size(); ++i) {
                full[i] += double(before[i]);
                size[i] += std::fabs(double(before[i]));
            }
        }
        result.out = std::move(full);
        result.magnitude = std::move(size);
        return result;
    }
    const std::int64_t half = outputs / 2;
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t o = 0; o < half; ++o) {
            const auto g = std::size_t(r * outputs + o), u = std::size_t(r * outputs + half + o);
            const double gated = gate(full[g], epilogue);
            result.out.push_back(gated * full[u]);
            // Both factors carry their own error; the gates' slope is below 1.13.
            result.magnitude.push_back(std::fabs(gated) * size[u] + 1.13 * size[g] * std::fabs(full[u]) +
                                       std::fabs(gated * full[u]));
        }
    }
    return result;
}

Choice route(const float* logits, std::int64_t experts, int k, bool renormalize) {
    const double top = double(*std::max_element(logits, logits + experts));
    std::vector<double> p;
    for (std::int64_t e = 0; e < experts; ++e)
        p.push_back(std::exp(double(logits[e]) - top));
    const double all = std::accumulate(p.begin(), p.end(), 0.0);
    std::vector<std::int32_t> order(p.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return logits[std::size_t(a)] > logits[std::size_t(b)];
    });
    Choice c;
    c.ids.assign(order.begin(), order.begin() + k);
    std::sort(c.ids.begin(), c.ids.end());
    double chosen = 0;
    for (const std::int32_t e : c.ids)
        chosen += p[std::size_t(e)];
    for (const std::int32_t e : c.ids)
        c.weights.push_back(p[std::size_t(e)] / (renormalize ? chosen : all));
    return c;
}

std::vector<double> rms_norm(const float* x, std::int64_t rows, std::int64_t cols, const float* weight,
                             double eps) {
    std::vector<double> out;
    for (std::int64_t r = 0; r < rows; ++r) {
        double squares = 0;
        for (std::int64_t k = 0; k < cols; ++k)
            squares += double(x[r * cols + k]) * double(x[r * cols + k]);
        const double rms = std::sqrt(squares / double(cols) + eps);
        for (std::int64_t k = 0; k < cols; ++k)
            out.push_back(double(x[r * cols + k]) / rms * double(weight[k]));
    }
    return out;
}

void rotate(double* head, int rotary_dims, int position, std::span<const float> inverse_frequency,
            double factor) {
    const int half = rotary_dims / 2;
    for (int i = 0; i < half; ++i) {
        const double angle = double(position) * double(inverse_frequency[std::size_t(i)]);
        const double c = std::cos(angle) * factor, s = std::sin(angle) * factor;
        const double a = head[i], b = head[i + half];
        head[i] = a * c - b * s;
        head[i + half] = b * c + a * s;
    }
}

std::vector<double> attention(const float* q, const std::vector<int>& positions, const double* keys,
                              const double* values, const HeadShape& shape, double scale, int window,
                              double softcap) {
    const int dim = shape.head_dim, group = shape.heads / shape.kv_heads;
    std::vector<double> out;
    for (std::size_t r = 0; r < positions.size(); ++r) {
        for (int h = 0; h < shape.heads; ++h) {
            const float* query = q + (r * std::size_t(shape.heads) + std::size_t(h)) * std::size_t(dim);
            const int last = positions[r];
            const int first = window > 0 && last - window + 1 > 0 ? last - window + 1 : 0;
            std::vector<double> weight;
            double top = -HUGE_VAL, total = 0;
            for (int p = first; p <= last; ++p) {
                const double* key =
                    keys + (std::size_t(p) * std::size_t(shape.kv_heads) + std::size_t(h / group)) *
                               std::size_t(dim);
                double score = 0;
                for (int d = 0; d < dim; ++d)
                    score += double(query[d]) * key[d];
                score *= scale;
                if (softcap > 0) score = softcap * std::tanh(score / softcap);
                weight.push_back(score);
                top = std::fmax(top, score);
            }
            for (double& w : weight)
                total += w = std::exp(w - top);
            for (int d = 0; d < dim; ++d) {
                double sum = 0;
                for (int p = first; p <= last; ++p) {
                    sum += weight[std::size_t(p - first)] *
                           values[(std::size_t(p) * std::size_t(shape.kv_heads) + std::size_t(h / group)) *
                                      std::size_t(dim) +
                                  std::size_t(d)];
                }
                out.push_back(sum / total);
            }
        }
    }
    return out;
}

}  // namespace recto::reference
