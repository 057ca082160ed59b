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
}

}  // namespace

Array CaseArray(const CaseRows& rows, const std::filesystem::path& path) {
  const size_t width = rows.columns().size();
  const auto widest = std::max_element(
      rows.columns().begin(), rows.columns().end(), [](const Column& a, const Column& b) {
        return a.bits < b.bits;
      });
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes), [&](ElementType t) {
    return 8 * ElementBytes(t) >= static_cast<size_t>(widest->bits);
  });
  if (type == std::end(kTypes)) {
    throw Error::Format("{}: column {} has {} bits, too many for an element of a .npy file",
                        path.string(),
                        widest->name,
                        widest->bits);
  }
  Array array;
  array.type = *type;
  array.shape = {rows.size(), width};
  array.bytes.resize(array.Elements() * ElementBytes(array.type));
  WithElements(array, [&](auto* elements) {
    using Element = std::remove_pointer_t<decltype(elements)>;
    ParallelFor(rows.size(), kPieceRows, [&](size_t begin, size_t end) {
      std::vector<uint64_t> row(width);
      for (size_t i = begin; i < end; ++i) {
        rows.Row(i, row);
        for (size_t j = 0; j < width; ++j) elements[i * width + j] = static_cast<Element>(row[j]);
      }
    });
  });
  return array;
}

void TallyNpy(const std::filesystem::path& path,
              const CaseColumns& columns,
              bool require_flags,
              CaseTally& total) {
  const Array array = ReadNpy(path);
  CheckShape(array, path.string(), columns, require_flags);
  const size_t rows = array.shape[0];
  const auto row_columns = std::span(columns.all).first(array.shape[1]);
  const size_t pieces = (rows + kPieceRows - 1) / kPieceRows;
  std::vector<std::unique_ptr<CaseTally>> tallies(pieces);
  std::vector<std::optional<Fault>> faults(pieces);
  ParallelTasks(pieces, [&](size_t i) {
    tallies[i] = total.Fresh();
    WithElements(array, [&](const auto* elements) {
      const size_t end = std::min(rows, (i + 1) * kPieceRows);
      faults[i] = AddRows(elements, i * kPieceRows, end, row_columns, *tallies[i]);
    });
  });
  for (size_t i = 0; i < pieces; ++i) {
    if (const auto& fault = faults[i]) {
      const Column& column = row_columns[fault->column];
      throw Error::Format("{}: row {}, column {} ({}): {:X} does not fit into {} bits",
                          path.string(),
                          fault->row,
                          fault->column + 1,
                          column.name,
                          fault->value,
                          column.bits);
    }
    total.Append(*tallies[i]);
  }
}

}  // namespace numsim
