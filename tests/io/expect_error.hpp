// EXPECT_ERROR(statement, kind, "text"): the statement throws an Error of that kind, in one line, whose message is or
// contains the text.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "implicit_diffusion/error.hpp"

namespace implicit_diffusion::io {

template <class Statement>
testing::AssertionResult throws_error(const Statement& statement, ErrorKind kind, const std::string& text) {
  try {
    statement();
  } catch (const Error& error) {
    const std::string message = error.what();
    if (error.kind() != kind) return testing::AssertionFailure() << "another kind of error: " << message;
    if (message.find(text) == std::string::npos) return testing::AssertionFailure() << "another message: " << message;
    if (message.find('\n') != std::string::npos) return testing::AssertionFailure() << "two lines: " << message;
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "nothing was thrown; expected: " << text;
}

}  // namespace implicit_diffusion::io

#define EXPECT_ERROR(statement, kind, text) \
  EXPECT_TRUE(::implicit_diffusion::io::throws_error([&] { (void)(statement); }, ErrorKind::kind, text))
