#include "session.hpp"

#include <poll.h>

namespace checker {

bool Connection::open(const std::string& conninfo) {
  close();
  connection_ = PQconnectdb(conninfo.c_str());
  if (PQstatus(connection_) != CONNECTION_OK) {
    close();
    return false;
  }
  PQsetNoticeReceiver(connection_, notice, this);
  return true;
}

void Connection::close() {
  if (connection_ != nullptr) PQfinish(connection_);
  connection_ = nullptr;
  busy_ = false;
}

void Connection::notice(void* self, const PGresult* result) {
  const auto* connection = static_cast<Connection*>(self);
  const char* text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  if (connection->on_notice && text != nullptr) connection->on_notice(text);
}

void Connection::send(const std::string& statements, const std::string& data) {
  reply_ = {};
  data_ = data;
  busy_ = true;
  if (PQsendQuery(connection_, statements.c_str()) == 0) reply_.lost = true;
}

void Connection::collect(PGresult* result) {
  switch (PQresultStatus(result)) {
    case PGRES_COPY_IN:
      PQputCopyData(connection_, data_.data(), static_cast<int>(data_.size()));
      PQputCopyEnd(connection_, nullptr);
      break;
    case PGRES_TUPLES_OK:
      for (int row = 0; row < PQntuples(result); ++row) {
        reply_.rows.emplace_back();
        for (int column = 0; column < PQnfields(result); ++column)
          reply_.rows.back().emplace_back(PQgetvalue(result, row, column));
      }
      [[fallthrough]];
    case PGRES_COMMAND_OK: reply_.tag = PQcmdStatus(result); break;
    default: {
      const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
      reply_.state = state == nullptr ? "08006" : state;
      reply_.error = PQresultErrorMessage(result);
    }
  }
  PQclear(result);
}

bool Connection::receive(Reply& reply) {
  // Reads what arrived before the connection ended, too.
  if (!reply_.lost) PQconsumeInput(connection_);
  if (!busy_) {
    reply = {};
    reply.lost = PQstatus(connection_) != CONNECTION_OK;
    return reply.lost;
  }
  while (!reply_.lost) {
    if (PQstatus(connection_) == CONNECTION_OK && PQisBusy(connection_)) return false;
    PGresult* result = PQgetResult(connection_);
    if (result == nullptr) break;
    collect(result);
  }
  if (PQstatus(connection_) != CONNECTION_OK) reply_.lost = true;
  busy_ = false;
  reply = std::move(reply_);
  return true;
}

Reply Connection::ask(const std::string& statements) {
  Reply reply;
  send(statements);
  while (!receive(reply)) {
    pollfd entry = {socket(), POLLIN, 0};
    poll(&entry, 1, 1000);
  }
  return reply;
}

}  // namespace checker
