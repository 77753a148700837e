// A connection that sends a request without waiting for the answer.
#pragma once

#include <libpq-fe.h>

#include <functional>
#include <string>
#include <vector>

namespace checker {

struct Reply {
  std::vector<std::vector<std::string>> rows;  // of all statements of the request
  std::string tag;                             // of the last one
  std::string state, error;                    // empty: it succeeded
  bool lost = false;                           // the connection is gone
};

class Connection {
 public:
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { close(); }

  bool open(const std::string& conninfo);
  void close();
  bool is_open() const { return connection_ != nullptr; }
  bool is_busy() const { return busy_; }
  int socket() const { return PQsocket(connection_); }
  int process() const { return PQbackendPID(connection_); }
  bool in_transaction() const { return PQtransactionStatus(connection_) == PQTRANS_INTRANS; }
  bool in_failed_transaction() const { return PQtransactionStatus(connection_) == PQTRANS_INERROR; }

  // `data` is what COPY FROM STDIN reads.
  void send(const std::string& statements, const std::string& data = "");
  // True once the whole answer is in `reply`, or the connection is lost.
  bool receive(Reply& reply);
  // Sends a request and waits for the answer.
  Reply ask(const std::string& statements);

  std::function<void(const std::string&)> on_notice;

 private:
  static void notice(void* self, const PGresult* result);
  void collect(PGresult* result);

  PGconn* connection_ = nullptr;
  bool busy_ = false;
  std::string data_;
  Reply reply_;
};

}  // namespace checker
