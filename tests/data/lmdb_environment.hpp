// LMDB environments for tests, as LSUN has them.
#pragma once

#include <gtest/gtest.h>
#include <lmdb.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace implicit_diffusion::data {

// Writes the entries, each a key and its value.
inline void write_lmdb(const std::filesystem::path& folder,
                       const std::vector<std::pair<std::string, std::string>>& entries) {
  std::filesystem::create_directories(folder);
  MDB_env* env = nullptr;
  MDB_txn* transaction = nullptr;
  MDB_dbi table = 0;
  EXPECT_EQ(mdb_env_create(&env), 0);
  EXPECT_EQ(mdb_env_set_mapsize(env, 1 << 24), 0);
  EXPECT_EQ(mdb_env_open(env, folder.c_str(), MDB_NOLOCK, 0600), 0);
  EXPECT_EQ(mdb_txn_begin(env, nullptr, 0, &transaction), 0);
  EXPECT_EQ(mdb_dbi_open(transaction, nullptr, 0, &table), 0);
  for (const auto& [name, bytes] : entries) {
    MDB_val key{name.size(), const_cast<char*>(name.data())}, value{bytes.size(), const_cast<char*>(bytes.data())};
    EXPECT_EQ(mdb_put(transaction, table, &key, &value, 0), 0);
  }
  EXPECT_EQ(mdb_txn_commit(transaction), 0);
  mdb_env_close(env);
}

}  // namespace implicit_diffusion::data
