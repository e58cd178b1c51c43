// EXPECT_ERROR(statement, ErrorType, "exact text")
#pragma once

#include <gtest/gtest.h>

#include <string>

#define EXPECT_ERROR(statement, ErrorType, text)                      \
  do {                                                                \
    try {                                                             \
      statement;                                                      \
      ADD_FAILURE() << "no " #ErrorType " was thrown by " #statement; \
    } catch (const ErrorType& error) {                                \
      EXPECT_EQ(std::string(error.what()), std::string(text));        \
    }                                                                 \
  } while (false)
