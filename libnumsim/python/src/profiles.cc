// Profiles: the conversion rules of other implementations, and complete differences between two.
#include "libnumsim/python/src/bindings.h"
#include "numsim/base/nearest_name.h"
#include "numsim/base/parallel.h"
#include "numsim/profiles/cause.h"
#include "numsim/profiles/diff.h"
#include "numsim/profiles/profile.h"

namespace numsim::python {
namespace {

DiffBy ParseDiffBy(std::string_view text) {
  if (text == "code") return DiffBy::kCode;
  if (text == "value") return DiffBy::kValue;
  throw NotOneOf("by", text, "code, value");
}

// Writes the code of each number, given as its bits. An implementation whose elements share a random
// register sees `word` as its first element does.
template <typename Bits>
void EncodeBits(const ProfileConversion& conversion,
                std::span<const Bits> bits,
                uint32_t word,
                std::span<uint32_t> codes) {
  const uint32_t random = conversion.RandomOfWord(word);
  ParallelFor(bits.size(), 1 << 12, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) codes[i] = conversion.Encode(bits[i], random);
  });
}

void EncodeInto(const ProfileConversion& conversion,
                const Input& bits,
                uint32_t word,
                const OutputOf<uint32_t>& codes) {
  if (bits.size() != codes.size()) throw Error("encode: arrays of different sizes");
  const bool wide = bits.dtype() == nb::dtype<uint64_t>();
  if (!wide && bits.dtype() != nb::dtype<uint32_t>()) RefuseType("encode");
  const ArrayCall call;
  if (wide) {
    EncodeBits(conversion, Elements<uint64_t>(bits), word, Elements(codes));
  } else {
    EncodeBits(conversion, Elements<uint32_t>(bits), word, Elements(codes));
  }
}

}  // namespace

void BindProfiles(nb::module_& m) {
  nb::class_<ProfileConversion>(m, "ProfileConversion")
      .def(
          "__init__",
          [](ProfileConversion* self,
             std::string_view profile,
             std::string_view source,
             std::string_view to) {
            new (self) ProfileConversion(
                CompleteProfileName(profile), ParseSourceType(source), ParseFormat(to));
          },
          nb::arg("profile"),
          nb::arg("source"),
          nb::arg("to"))
      .def_prop_ro("name", &ProfileConversion::name)
      .def_prop_ro("format", [](const ProfileConversion& c) { return ToString(c.format()); })
      .def_prop_ro("meaning", [](const ProfileConversion& c) { return ToString(c.meaning()); })
      .def_prop_ro("random_bits", &ProfileConversion::random_bits)
      .def("encode",
           &EncodeInto,
           nb::arg("bits").noconvert(),
           nb::arg("word"),
           nb::arg("codes").noconvert());
  nb::class_<DifferingInterval>(m, "Interval")
      .def_ro("first", &DifferingInterval::first)
      .def_ro("last", &DifferingInterval::last)
      .def_ro("code_a", &DifferingInterval::code_a)
      .def_ro("code_b", &DifferingInterval::code_b)
      .def_prop_ro("count", &DifferingInterval::Count);
  nb::class_<Difference>(m, "Difference")
      .def_ro("intervals", &Difference::intervals)
      .def_ro("differing", &Difference::differing)
      .def_ro("differing_nan", &Difference::differing_nan);

  // (name, version, evidence, source, note, stochastic) of each profile.
  m.def("profile_table", [] {
    nb::list rows;
    for (const ProfileInfo& row : ProfileTable()) {
      rows.append(nb::make_tuple(
          row.name, row.version, ToString(row.evidence), row.source, row.note, row.stochastic));
    }
    return rows;
  });
  m.def(
      "profile_targets",
      [](std::string_view profile, std::string_view source) {
        return ProfileTargets(CompleteProfileName(profile), ParseSourceType(source));
      },
      nb::arg("profile"),
      nb::arg("source"));
  m.def(
      "diff",
      [](const ProfileConversion& a,
         const ProfileConversion& b,
         uint32_t word,
         std::string_view by) {
        const DiffBy how = ParseDiffBy(by);
        const ArrayCall call;
        return Diff(a, b, word, how);
      },
      nb::arg("a"),
      nb::arg("b"),
      nb::arg("word"),
      nb::arg("by"));
  // (name, explanation) of the cause of an interval.
  m.def(
      "cause_of",
      [](const DifferingInterval& interval,
         const ProfileConversion& a,
         const ProfileConversion& b) {
        const DifferenceCause cause = CauseOf(interval, a, b);
        return nb::make_tuple(ToString(cause), Explanation(cause, a.name(), b.name()));
      },
      nb::arg("interval"),
      nb::arg("a"),
      nb::arg("b"));
}

}  // namespace numsim::python
