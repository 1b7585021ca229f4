#!/usr/bin/env python3
"""Writes the sample events of kafka/ from records that a person can read: values as JSON, headers as text. Run it after a change here:
python3 events/make.py. A test runs every event against events/sluice.toml and compares the outcome with events/README.md."""
import base64
import json
import pathlib

OUT = pathlib.Path(__file__).parent / "kafka"
T0 = 1772360130000


def b64(value):
    """JSON values are encoded, bytes are taken as they are, None stays null."""
    if value is None:
        return None
    raw = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return base64.b64encode(raw).decode()


def record(topic, offset, key, value, headers=None, partition=0, **fields):
    signed = lambda text: [b - 256 if b > 127 else b for b in text.encode()]
    return {
        "topic": topic, "partition": partition, "offset": offset, "timestamp": T0 + offset, "timestampType": "CREATE_TIME",
        "key": b64(key), "value": b64(value),
        "headers": [{name: signed(text)} for name, text in (headers or {}).items()], **fields,
    }


def event(name, *records, source="aws:kafka"):
    groups = {}
    for r in records:
        groups.setdefault(f"{r['topic']}-{r['partition']}", []).append(r)
    body = {"eventSource": source, "bootstrapServers": "b-1.demo.example:9098,b-2.demo.example:9098", "records": groups}
    if source == "aws:kafka":
        body["eventSourceArn"] = "arn:aws:kafka:eu-west-1:000000000000:cluster/demo/11111111-2222-3333-4444-555555555555-1"
    (OUT / f"{name}.json").write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n")


# ---------------------------------------------------------------- the systems
def erp(table, op, data, before=None, **meta):
    return {"meta": {"source": "erp", "table": table, "op": op, "ts_ms": T0, **meta}, "before": before, "data": data}


def crm(table, op, after, before=None, **source):
    return {"before": before, "after": after, "op": op, "ts_ms": T0,
            "source": {"connector": "postgresql", "name": "crm", "db": "crm", "schema": "public", "table": table, "ts_ms": T0, "lsn": 1, **source}}


INVOICE = {"type": "struct", "optional": True, "name": "shop.public.invoices.Value", "fields": [
    {"field": "id", "type": "int32", "optional": False},
    {"field": "amount", "type": "bytes", "optional": True, "name": "org.apache.kafka.connect.data.Decimal", "version": 1,
     "parameters": {"scale": "2", "connect.decimal.precision": "12"}},
    {"field": "issued_at", "type": "int64", "optional": True, "name": "io.debezium.time.MicroTimestamp", "version": 1},
    {"field": "paid_at", "type": "string", "optional": True, "name": "io.debezium.time.ZonedTimestamp", "version": 1},
    {"field": "due", "type": "int32", "optional": True, "name": "io.debezium.time.Date", "version": 1},
    {"field": "lines", "type": "array", "optional": True, "items": {"type": "string", "optional": True}}]}


def shop(op, after, before=None):
    fields = [{**INVOICE, "field": "before"}, {**INVOICE, "field": "after"},
              {"field": "source", "type": "struct", "optional": False, "fields": [{"field": "name", "type": "string", "optional": False},
                                                                                 {"field": "table", "type": "string", "optional": False}]},
              {"field": "op", "type": "string", "optional": False}, {"field": "ts_ms", "type": "int64", "optional": True}]
    return {"schema": {"type": "struct", "optional": False, "name": "shop.public.invoices.Envelope", "fields": fields},
            "payload": {"before": before, "after": after, "source": {"name": "shop", "table": "invoices"}, "op": op, "ts_ms": T0}}


def unscaled(cents):
    return base64.b64encode(cents.to_bytes((cents.bit_length() + 8) // 8, "big", signed=True)).decode()


def order(order_id, total, status="NEW", **more):
    return {"order_id": order_id, "customer_id": 7, "total": total, "status": status, "created_at": "2026-03-01T10:15:30.123456Z", **more}


def ticket(ticket_id, op, **row):
    return {"id": ticket_id, **row, "__op": op, "__table": "tickets", "__source_ts_ms": T0}


# ---------------------------------------------------------------- the events
E = "erp.cdc"
event("01-erp-orders",
      record(E, 100, {"order_id": 1}, erp("orders", "I", order(1, "19.90"))),
      record(E, 101, {"order_id": 2}, erp("orders", "I", order(2, "100.00"))),
      record(E, 102, {"order_id": 3}, erp("orders", "I", order(3, "0.05"))),
      record(E, 103, {"order_id": 1}, erp("orders", "U", order(1, "19.90", "PAID"), order(1, "19.90"))),
      record(E, 104, {"order_id": 3}, erp("orders", "D", None, {"order_id": 3})))

event("02-crm-customers-and-tombstone",
      record("crm.customers", 10, {"id": 7}, crm("customers", "r", {"id": 7, "name": "Ada", "vip": False})),
      record("crm.customers", 11, {"id": 8}, crm("customers", "c", {"id": 8, "name": "Grace", "vip": True})),
      record("crm.customers", 12, {"id": 7}, crm("customers", "u", {"id": 7, "name": "Ada L.", "vip": True}, {"id": 7})),
      record("crm.customers", 13, {"id": 8}, crm("customers", "d", None, {"id": 8})),
      record("crm.customers", 14, {"id": 8}, None))

event("03-shop-invoices-with-schema",
      record("shop.invoices", 0, {"id": 1}, shop("c", {"id": 1, "amount": unscaled(123450), "issued_at": 1772360129123456,
                                                      "paid_at": "2026-03-01T10:15:29.5+02:00", "due": 20543, "lines": ["a", None]})),
      record("shop.invoices", 1, {"id": 2}, shop("c", {"id": 2, "amount": unscaled(-5), "issued_at": -1, "paid_at": None, "due": 0, "lines": []})),
      source="SelfManagedKafka")

event("04-bpm-rows-by-header",
      record("bpm.rows", 0, {"instance_id": "p-1"}, {"instance_id": "p-1", "state": "ACTIVE", "vars": {"amount": 12.5}}, {"table": "process_instances"}),
      record("bpm.rows", 1, {"instance_id": "p-2"}, {"instance_id": "p-2", "state": "ACTIVE", "vars": {"amount": 3}}, {"table": "process_instances"}),
      record("bpm.rows", 2, {"instance_id": "p-1"}, {"instance_id": "p-1", "state": "COMPLETED", "vars": {"amount": 12.5}}, {"table": "process_instances"}),
      record("bpm.rows", 3, {"instance_id": "p-2"}, None, {"table": "process_instances"}))

event("05-crm-tickets-flat",
      record("crm.tickets.flat", 0, {"id": 1}, ticket(1, "c", subject="no heat", prio=1)),
      record("crm.tickets.flat", 1, {"id": 2}, ticket(2, "c", subject="late", prio=3)),
      record("crm.tickets.flat", 2, {"id": 2}, {**ticket(2, "d", subject=None, prio=None), "__deleted": "true"}))

event("06-mixed-systems-with-bad-records",
      record(E, 105, {"order_id": 4}, erp("orders", "I", order(4, "7.77"))),
      record(E, 106, {"order_id": 5}, erp("orders", "I", order(5, "seven"))),
      record(E, 107, {"order_id": 6}, b'{"meta":{"table":"orders","op":"I"},"data":{"order_id":6,'),
      record(E, 108, {"order_id": 7}, erp("orders", "X", order(7, "1.00"))),
      record(E, 109, {"id": 1}, erp("../../payroll", "I", {"id": 1})),
      record("crm.customers", 15, {"id": 9}, crm("customers", "c", {"id": 9, "name": "Alan", "vip": False})),
      record("crm.tickets.flat", 3, {"id": 3}, ticket(3, "c", subject="broken link", prio=2)),
      {**record("bpm.rows", 4, None, None, {"table": "process_instances"}), "value": "@@@ no base64 @@@"},
      record("bpm.rows", 5, {"instance_id": "p-3"}, {"instance_id": "p-3", "state": "ACTIVE", "vars": {"amount": 1}}, {"table": "process_instances"}))

event("07-poison",
      record(E, 110, {"order_id": 8}, b""),
      record(E, 111, {"order_id": 8}, b"null"),
      record(E, 112, {"order_id": 8}, b'{"meta":{"table":"orders","op":"I"},"data":{"order_id":8,"status":"\xff\xfe"}}'),
      record(E, 113, {"order_id": 8}, b'{"meta":{"table":"orders","op":"I"},"data":{"order_id":8,"total":"1.00","total":"2.00"}}'),
      record(E, 114, {"order_id": 8}, b'{"meta":{"table":"orders","op":"I"},"data":{"order_id":8,"x":' + b"[" * 100 + b"]" * 100 + b"}}"),
      record(E, 115, None, erp("orders", "I", {"status": "NEW"})),
      record(E, 116, {"order_id": 8}, erp("orders", "I", order(8, "1.005"))),
      record(E, 117, {"order_id": 8}, erp("orders", "I", order(8, "1.00", created_at="2026-03-01T10:15:30"))))

event("08-replay-cut-differently",
      record(E, 103, {"order_id": 1}, erp("orders", "U", order(1, "19.90", "PAID"), order(1, "19.90"))),
      record(E, 104, {"order_id": 3}, erp("orders", "D", None, {"order_id": 3})),
      record(E, 105, {"order_id": 4}, erp("orders", "I", order(4, "7.77"))),
      record(E, 106, {"order_id": 5}, erp("orders", "I", order(5, "seven"))),
      record(E, 118, {"order_id": 9}, erp("orders", "I", order(9, "9.00"))))

event("09-two-partitions",
      record(E, 119, {"order_id": 10}, erp("orders", "I", order(10, "10.00"))),
      record(E, 500, {"order_id": 11}, erp("orders", "I", order(11, "11.00")), partition=3),
      record(E, 120, {"order_id": 10}, erp("orders", "D", None, {"order_id": 10})),
      record(E, 501, {"order_id": 11}, erp("orders", "U", order(11, "11.11")), partition=3))

event("10-schema-change",
      record(E, 121, {"order_id": 12}, erp("orders", "I", order(12, "12.00", channel="web"))),
      record(E, 122, {"order_id": 13}, erp("orders", "I", order(13, "13.00", shipping={"city": "Bern", "zip": "3011"}))))

event("11-control-events",
      record("__debezium-heartbeat.crm", 0, {"serverName": "crm"}, {"ts_ms": T0}),
      record("crm.customers", 16, {"id": "812:1"}, {"status": "BEGIN", "id": "812:1", "event_count": None, "data_collections": None, "ts_ms": T0}),
      record("crm.customers", 17, {"id": "812:1"}, {"status": "END", "id": "812:1", "event_count": 1, "data_collections": [], "ts_ms": T0}),
      record("crm.customers", 18, {"prefix": "audit"}, {"op": "m", "ts_ms": T0, "source": {"name": "crm", "table": ""}, "message": {"prefix": "audit", "content": "aGk="}}),
      record("crm.customers", 19, {"databaseName": "crm"}, {"source": {"name": "crm", "db": "crm", "table": "customers"}, "ts_ms": T0, "databaseName": "crm",
                                                           "ddl": "ALTER TABLE customers ADD phone VARCHAR(20)", "tableChanges": []}))

event("12-key-change",
      record("crm.customers", 20, {"id": 90}, crm("customers", "u", {"id": 90, "name": "Alan T.", "vip": False}, {"id": 9, "name": "Alan", "vip": False})))

event("13-integrity-checks",
      record(E, 123, {"order_id": 14}, erp("orders", "I", order(14, "-0.01"))),
      record(E, 124, {"order_id": 15}, erp("orders", "I", order(15, "15.00", "LOST"))),
      record(E, 125, {"order_id": 16}, erp("orders", "I", order(16, "16.00", "SHIPPED"))))

event("14-versions-out-of-order",
      record(E, 126, {"sku": "a"}, erp("stock", "U", {"sku": "a", "quantity": 5, "revision": 3})),
      record(E, 502, {"sku": "a"}, erp("stock", "U", {"sku": "a", "quantity": 9, "revision": 2}), partition=3),
      record(E, 503, {"sku": "a"}, erp("stock", "U", {"sku": "a", "quantity": 4, "revision": 10}), partition=3))

event("15-unchanged-values",
      record("crm.tickets", 0, {"id": 1}, crm("tickets", "u", {"id": 1, "subject": "__debezium_unavailable_value", "prio": 5})))

odd = record(E, 127, {"order_id": 17}, erp("orders", "I", order(17, "17.00")), headers={"näme": "ë"})
odd["partition"], odd["timestamp"] = "0", -1
bare = record(E, 128, {"order_id": 18}, erp("orders", "I", order(18, "18.00")))
del bare["headers"], bare["timestampType"]
event("16-odd-shapes", odd, bare, source="SelfManagedKafka")
