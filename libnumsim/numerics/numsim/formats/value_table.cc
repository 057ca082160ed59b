#include "numsim/formats/value_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>

#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/formats/internal/name_lookup.h"

namespace numsim {
namespace {

constexpr size_t kMostTables = 200;

// The values of NF4 as [QLoRA] and bitsandbytes have them. They are quantiles of the normal
// distribution, computed to about 1.1e-7 and so up to 6 ulp away from the exact ones.
constexpr float kNf4[] = {-1.0f,
                          -0.6961928009986877f,
                          -0.5250730514526367f,
                          -0.39491748809814453f,
                          -0.28444138169288635f,
                          -0.18477343022823334f,
                          -0.09105003625154495f,
                          0.0f,
                          0.07958029955625534f,
                          0.16093020141124725f,
                          0.24611230194568634f,
                          0.33791524171829224f,
                          0.44070982933044434f,
                          0.5626170039176941f,
                          0.7229568362236023f,
                          1.0f};
// The same construction for fewer bits: Q(p) / Q(0.9677083) for p that fall equally from 0.9677083
// toward 1/2, in 2^(k-1) steps above 0 and 2^(k-1) - 1 below. The float32 nearest to the exact
// quantiles.
constexpr float kNf3[] = {
    -1.0f, -0.478629172f, -0.217141822f, 0.0f, 0.160930172f, 0.337915182f, 0.562616944f, 1.0f};
constexpr float kNf2[] = {-1.0f, 0.0f, 0.337915182f, 1.0f};
// FP4 of bitsandbytes: twelfths, a sign bit and magnitudes in no order. Its code 8 is a second zero.
constexpr float kBnbFp4[] = {0.0f,
                             0.0625f / 12,
                             8.0f / 12,
                             1.0f,
                             4.0f / 12,
                             0.5f,
                             2.0f / 12,
                             0.25f,
                             0.0f,
                             -0.0625f / 12,
                             -8.0f / 12,
                             -1.0f,
                             -4.0f / 12,
                             -0.5f,
                             -2.0f / 12,
                             -0.25f};

FormatSpec SpecOf(size_t number, size_t count) {
  const int bits = static_cast<int>(std::bit_width(count - 1));
  return {.exponent_bits = 1,
          .mantissa_bits = static_cast<int8_t>(bits - 1),
          .sign = Sign::kUnsigned,
          .zero = Zero::kUnsigned,
          .table = static_cast<uint8_t>(number)};
}

ValueTable MakeTable(size_t number,
                     std::string name,
                     std::string source,
                     std::string note,
                     std::span<const float> by_code) {
  ValueTable table;
  table.name = std::move(name);
  table.source = std::move(source);
  table.note = std::move(note);
  table.spec = SpecOf(number, by_code.size());
  table.by_code.assign(size_t{1} << table.spec.Bits(), std::numeric_limits<float>::quiet_NaN());
  std::vector<size_t> order(by_code.size());
  for (size_t code = 0; code < by_code.size(); ++code) {
    table.by_code[code] = by_code[code] == 0 ? 0.0f : by_code[code];
    order[code] = code;
  }
  std::stable_sort(
      order.begin(), order.end(), [&](size_t a, size_t b) { return by_code[a] < by_code[b]; });
  for (const size_t code : order) {
    if (!table.values.empty() && table.values.back() == by_code[code]) continue;
    table.values.push_back(table.by_code[code]);
    table.codes.push_back(static_cast<uint8_t>(code));
  }
  table.largest = std::max(std::abs(table.values.front()), std::abs(table.values.back()));
  const auto positive = std::upper_bound(table.values.begin(), table.values.end(), 0.0f);
  table.smallest_positive = positive == table.values.end() ? 0 : *positive;
  return table;
}

// All tables of the process. Number 0 is none. Entries never change once they are there, so reading
// needs no lock.
class Registry {
 public:
  static Registry& Get() {
    static Registry registry;
    return registry;
  }

  const ValueTable* At(size_t number) const {
    return tables_[number].load(std::memory_order_acquire);
  }

  std::span<const ValueTable* const> named() const { return named_; }

  const ValueTable& Add(std::string name,
                        std::string source,
                        std::string note,
                        std::span<const float> by_code) {
    const std::lock_guard lock(mutex_);
    for (size_t number = 1; number < next_; ++number) {
      const ValueTable& table = *At(number);
      const size_t n = by_code.size();
      if (table.name == name && table.spec.Bits() == SpecOf(0, n).Bits() &&
          std::equal(by_code.begin(), by_code.end(), table.by_code.begin()) &&
          (n == table.by_code.size() || std::isnan(table.by_code[n]))) {
        return table;
      }
    }
    if (next_ >= kMostTables) {
      throw Error::Format("format '{}': there are {} tables already", Printable(name), next_);
    }
    owned_[next_] = std::make_unique<const ValueTable>(
        MakeTable(next_, std::move(name), std::move(source), std::move(note), by_code));
    tables_[next_].store(owned_[next_].get(), std::memory_order_release);
    return *owned_[next_++];
  }

 private:
  Registry() {
    const auto add = [this](const char* name, const char* source, const char* note, auto&& values) {
      named_.push_back(&Add(name, source, note, values));
    };
    add("nf4", "QLoRA, bnb", "NF4: quantiles of the normal distribution, as in bitsandbytes", kNf4);
    add("nf3", "QLoRA, LoftQ", "the construction of NF4 with 3 bits", kNf3);
    add("nf2", "QLoRA, LoftQ", "the construction of NF4 with 2 bits", kNf2);
    add("bnb-fp4",
        "bnb",
        "FP4 of bitsandbytes: 0, 1/192, 1/6, 1/4, 1/3, 1/2, 2/3, 1, with signs",
        kBnbFp4);
    add("bnb-dynamic",
        "bitsandbytes8, torchao",
        "dynamic map of 8-bit optimisers, signed",
        DynamicMapValues(true));
    add("bnb-udynamic",
        "bitsandbytes8, torchao",
        "dynamic map of 8-bit optimisers, unsigned",
        DynamicMapValues(false));
  }

  std::mutex mutex_;
  size_t next_ = 1;
  std::array<std::atomic<const ValueTable*>, kMostTables> tables_ = {};
  std::array<std::unique_ptr<const ValueTable>, kMostTables> owned_;
  std::vector<const ValueTable*> named_;
};

}  // namespace

std::vector<float> DynamicMapValues(bool is_signed) {
  constexpr int kDecades = 7;
  std::vector<float> values = {0, 1};
  double decade = 1;  // 10^e, exact
  for (int e = 0; e < kDecades; ++e, decade *= 10) {
    const int parts = 1 << (kDecades - 1 - e + (is_signed ? 0 : 1));
    for (int i = 0; i < parts; ++i) {
      // (1/10 + 9/10 (2i + 1) / (2 parts)) / 10^e, as a quotient of integers.
      const double value = (2 * parts + 9 * (2 * i + 1)) / (20 * parts * decade);
      values.push_back(static_cast<float>(value));
      if (is_signed) values.push_back(-static_cast<float>(value));
    }
  }
  std::sort(values.begin(), values.end());
  return values;
}

std::span<const ValueTable* const> NamedTables() { return Registry::Get().named(); }

const ValueTable& TableOf(const FormatSpec& format) {
  const ValueTable* const table =
      format.table < kMostTables ? Registry::Get().At(format.table) : nullptr;
  NUMSIM_CHECK(table != nullptr, "table {} of values", int{format.table});
  return *table;
}

bool IsTableFormat(const FormatSpec& format) {
  if (format.table >= kMostTables) return false;
  const ValueTable* const table = Registry::Get().At(format.table);
  return table != nullptr && table->spec == format;
}

Format AddTable(std::string_view file, std::span<const float> by_code) {
  const std::string name = fmt::format("table:{}", file);
  const auto fail = [&](const std::string& why) {
    throw Error::Format("format '{}': {}", Printable(name), why);
  };
  if (by_code.size() < 2 || by_code.size() > 256) {
    fail(fmt::format("{} values, expected 2 to 256", by_code.size()));
  }
  for (size_t i = 0; i < by_code.size(); ++i) {
    if (!std::isfinite(by_code[i])) {
      fail(fmt::format("value {} is {}, expected a finite float32", i, by_code[i]));
    }
  }
  const auto [least, most] = std::minmax_element(by_code.begin(), by_code.end());
  if (*least == *most) fail("all values are equal, expected two different ones");
  const ValueTable& table = Registry::Get().Add(name, "custom", "table of values", by_code);
  return {table.name, table.spec};
}

const ValueTable* FindFoldedTable(std::string_view folded) {
  for (const ValueTable* const table : NamedTables()) {
    if (table->name == folded) return table;
  }
  return nullptr;
}

void RefuseTable(const FormatSpec& format, std::string_view who) {
  if (!format.IsTable()) return;
  throw Error::Format(
      "format '{}': a table of values, which {} does not take; casts and quantised "
      "matrices of the host take it",
      Printable(TableOf(format).name),
      who);
}

const ValueTable* FindTable(std::string_view name) { return FindFoldedTable(FoldedName(name)); }

Format ParseFormatOrTable(std::string_view text) {
  if (const ValueTable* const table = FindTable(text)) {
    return {table->name, table->spec};
  }
  return ParseFormat(text);
}

}  // namespace numsim
