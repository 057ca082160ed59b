#include "numsim/oracle/case_npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/io/array.h"
#include "numsim/io/npy.h"

namespace numsim {
namespace {

constexpr size_t kPieceRows = size_t{1} << 14;
constexpr size_t kPiecesAtOnce = 64;  // bounds the memory of tallies that keep every case

// Unsigned integer types of .npy files, narrowest first.
constexpr ElementType kTypes[] = {
    ElementType::kU8, ElementType::kU16, ElementType::kU32, ElementType::kU64};

bool IsUnsigned(ElementType type) {
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

// Calls work(pointer to the elements) with a pointer of the array's element type.
template <typename Bytes, typename Work>
void WithElements(Bytes& array, Work work) {
  switch (ElementBytes(array.type)) {
    case 1:
      return work(array.template Data<uint8_t>());
    case 2:
      return work(array.template Data<uint16_t>());
    case 4:
      return work(array.template Data<uint32_t>());
    default:
      return work(array.template Data<uint64_t>());
  }
}

struct Fault {
  size_t row, column;
  uint64_t value;
};

// Adds rows [begin, end) to `tally`. Stops at the first number that does not fit its column and
// returns it.
template <typename Element>
std::optional<Fault> AddRows(const Element* elements,
                             size_t begin,
                             size_t end,
                             std::span<const Column> columns,
                             CaseTally& tally) {
  std::vector<uint64_t> row(columns.size());
  for (size_t i = begin; i < end; ++i) {
    for (size_t j = 0; j < row.size(); ++j) {
      row[j] = elements[i * row.size() + j];
      if (row[j] > LargestOf(columns[j].bits)) return Fault{i, j, row[j]};
    }
    tally.Add(i, row);
  }
  return std::nullopt;
}

// Returns the type of the narrowest elements that hold every column, or nothing if none does.
std::optional<ElementType> NarrowestType(std::span<const Column> columns) {
  for (const ElementType type : kTypes) {
    const bool holds = std::all_of(columns.begin(), columns.end(), [&](const Column& column) {
      return static_cast<size_t>(column.bits) <= 8 * ElementBytes(type);
    });
    if (holds) return type;
  }
  return std::nullopt;
}

const Column& WidestOf(std::span<const Column> columns) {
  return *std::max_element(columns.begin(), columns.end(), [](const Column& a, const Column& b) {
    return a.bits < b.bits;
  });
}

// An element type that cannot hold a column means that numbers were cut when the array was made.
void CheckWidth(const Array& array, const std::string& path, std::span<const Column> columns) {
  const Column& widest = WidestOf(columns);
  if (static_cast<size_t>(widest.bits) <= 8 * ElementBytes(array.type)) return;
  const auto type = NarrowestType(columns);
  throw Error::Format("{}: element type {} is too narrow for column {} of {} bits, expected {}",
                      path,
                      ToString(array.type),
                      widest.name,
                      widest.bits,
                      type ? ToString(*type) : "text instead of .npy");
}

void CheckShape(const Array& array,
                const std::string& path,
                const CaseColumns& columns,
                bool require_flags) {
  const size_t least = columns.WithoutFlags();
  if (!IsUnsigned(array.type)) {
    throw Error::Format(
        "{}: element type is {}, expected unsigned integers", path, ToString(array.type));
  }
  const bool good = array.shape.size() == 2 && columns.IsWidth(array.shape[1]) &&
                    (!require_flags || array.shape[1] > least);
  if (!good) {
    const bool optional_flags = columns.has_flags && !require_flags;
    throw Error::Format("{}: shape {}, expected (cases, {}) for {}{}",
                        path,
                        ShapeToString(array.shape),
                        require_flags ? columns.all.size() : least,
                        columns.Names(require_flags ? columns.all.size() : least),
                        optional_flags ? ", or one more column for flags" : "");
  }
  if (array.shape[0] == 0) throw Error::Format("{}: no cases", path);
  CheckWidth(array, path, std::span(columns.all).first(array.shape[1]));
}

[[noreturn]] void ThrowFault(const Fault& fault, const std::string& path, const Column& column) {
  throw Error::Format("{}: row {}, column {} ({}): {:X} does not fit into {} bits",
                      path,
                      fault.row,
                      fault.column + 1,
                      column.name,
                      fault.value,
                      column.bits);
}

// Makes an array of `rows` rows. fill(i, row) writes row i; it is called on several threads.
template <typename Fill>
Array MakeArray(size_t rows,
                std::span<const Column> columns,
                const std::string& path,
                const Fill& fill) {
  const auto type = NarrowestType(columns);
  if (!type) {
    const Column& widest = WidestOf(columns);
    throw Error::Format("{}: column {} has {} bits, too many for an element of a .npy file",
                        path,
                        widest.name,
                        widest.bits);
  }
  const size_t width = columns.size();
  Array array;
  array.type = *type;
  array.shape = {rows, width};
  array.bytes.resize(array.Elements() * ElementBytes(array.type));
  WithElements(array, [&](auto* elements) {
    using Element = std::remove_pointer_t<decltype(elements)>;
    ParallelFor(rows, kPieceRows, [&](size_t begin, size_t end) {
      std::vector<uint64_t> row(width);
      for (size_t i = begin; i < end; ++i) {
        fill(i, std::span<uint64_t>(row));
        for (size_t j = 0; j < width; ++j) elements[i * width + j] = static_cast<Element>(row[j]);
      }
    });
  });
  return array;
}

// A tally that only lets the reader check that every number fits into its column.
class NoTally : public CaseTally {
 public:
  std::unique_ptr<CaseTally> Fresh() const override { return std::make_unique<NoTally>(); }
  void Add(uint64_t, std::span<const uint64_t>) noexcept override {}
  void Append(const CaseTally&) override {}
};

// Adds the cases of an array whose shape was checked.
void TallyArray(const Array& array,
                const std::string& path,
                std::span<const Column> columns,
                CaseTally& total) {
  const size_t rows = array.shape[0];
  const size_t pieces = (rows + kPieceRows - 1) / kPieceRows;
  for (size_t first = 0; first < pieces; first += kPiecesAtOnce) {
    const size_t count = std::min(kPiecesAtOnce, pieces - first);
    std::vector<std::unique_ptr<CaseTally>> tallies(count);
    std::vector<std::optional<Fault>> faults(count);
    ParallelTasks(count, [&](size_t i) {
      tallies[i] = total.Fresh();
      const size_t begin = (first + i) * kPieceRows;
      const size_t end = std::min(rows, begin + kPieceRows);
      WithElements(array, [&](const auto* elements) {
        faults[i] = AddRows(elements, begin, end, columns, *tallies[i]);
      });
    });
    for (size_t i = 0; i < count; ++i) {
      if (faults[i]) ThrowFault(*faults[i], path, columns[faults[i]->column]);
      total.Append(*tallies[i]);
    }
  }
}

}  // namespace

Array CaseArray(const CaseRows& rows, const std::filesystem::path& path) {
  return MakeArray(
      rows.size(), rows.columns(), path.string(), [&](size_t i, auto row) { rows.Row(i, row); });
}

void TallyNpy(const std::filesystem::path& path,
              const CaseColumns& columns,
              bool require_flags,
              CaseTally& total) {
  const Array array = ReadNpy(path);
  CheckShape(array, path.string(), columns, require_flags);
  TallyArray(array, path.string(), std::span(columns.all).first(array.shape[1]), total);
}

Array AnswerArray(const std::filesystem::path& path, const Operation& operation) {
  const Array cases = ReadNpy(path);
  const CaseColumns inputs = InputColumnsOf(operation);
  CheckShape(cases, path.string(), inputs, false);
  NoTally none;
  TallyArray(cases, path.string(), inputs.all, none);
  const CaseColumns columns = ColumnsOf(operation);
  return MakeArray(cases.shape[0], columns.all, path.string(), [&](size_t i, auto row) {
    WithElements(cases, [&](const auto* elements) {
      for (size_t j = 0; j < columns.inputs; ++j) row[j] = elements[i * columns.inputs + j];
    });
    Complete(operation, row);
  });
}

}  // namespace numsim
