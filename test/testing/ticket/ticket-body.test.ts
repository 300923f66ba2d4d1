import { describe, expect, it } from '@jest/globals';
import { left, right } from 'fp-ts/lib/Either.js';
import { readTicketBody } from '../../../src/testing/ticket/ticket-body.js';

const json = 'application/json';

describe('the body of a ticket request (contract 2.2, 4.1)', () => {
  it.each([
    [undefined, ''],
    [json, ''],
    [json, '{}'],
    [json, ' {"feed": "market"} '],
    [json, '{"other":1}'],
    ['application/json; charset=utf-8', '{}'],
    ['Application/JSON', '{}'],
  ])('selects market: %s %j', (contentType, body) => {
    expect(readTicketBody(contentType, Buffer.from(body))).toEqual(right('market'));
  });

  it('selects raw', () => {
    expect(readTicketBody(json, Buffer.from('{"feed":"raw"}'))).toEqual(right('raw'));
  });

  it.each(['{', ' ', '{"feed":"raw"', 'raw', '[]', '["raw"]', 'null', '"raw"', '1', 'true'])(
    'is no object: %j',
    (body) => {
      expect(readTicketBody(json, Buffer.from(body))).toEqual(left('invalid-body'));
    },
  );

  it.each([undefined, 'text/plain', 'application/x-www-form-urlencoded', 'application/jsonl'])(
    'is not sent as JSON: %s',
    (contentType) => {
      expect(readTicketBody(contentType, Buffer.from('{}'))).toEqual(left('invalid-body'));
    },
  );

  it('is not UTF-8', () => {
    const body = Buffer.from([...Buffer.from('{"a":"'), 0xff, ...Buffer.from('"}')]);
    expect(readTicketBody(json, body)).toEqual(left('invalid-body'));
  });

  it.each(['""', '"Market"', '"raw "', 'null', '1', '["raw"]', '{}', '"toString"'])('is no feed: %s', (feed) => {
    expect(readTicketBody(json, Buffer.from(`{"feed":${feed}}`))).toEqual(left('unknown-feed'));
  });
});
