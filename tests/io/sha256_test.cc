#include "numsim/io/shared/sha256.h"

#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

using Sha256Test = IoTest;

// The examples of FIPS 180-4's author: nothing, one block, and a million times 'a'.
TEST_F(Sha256Test, AgreesWithPublishedDigests) {
  EXPECT_EQ(Sha256Hex(Put("x", "")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex(Put("x", "abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex(Put("x", std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// `head -c 3145729 /dev/zero | sha256sum`
TEST_F(Sha256Test, FilesLongerThanTheBufferAreReadWhole) {
  EXPECT_EQ(Sha256Hex(Put("x", std::string(3145729, '\0'))),
            "5983281b51c767c831104f52c95e4075f27e6f4fa8dd0526e3929f79176a1217");
}

TEST_F(Sha256Test, UnreadableFilesAreErrors) {
  ExpectMessage(ErrorOf([&] { Sha256Hex(Path("no")); }), {Path("no").string(), "No such file"});
  ExpectMessage(ErrorOf([&] { Sha256Hex(Directory()); }), {"directory"});
}

}  // namespace
}  // namespace numsim
