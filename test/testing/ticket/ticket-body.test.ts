import { describe, expect, it } from '@jest/globals';
import { left, right } from 'fp-ts/lib/Either.js';
import { isDeclaredJson, readTicketBody } from '../../../src/testing/ticket/ticket-body.js';

const json = 'application/json';

describe('the body of a ticket request (contract 2.2, 4.1)', () => {
  it.each(['', '{}', ' {"feed": "market"} ', '{"other":1}'])('selects market: %j', (body) => {
    expect(readTicketBody(Buffer.from(body))).toEqual(right('market'));
  });

  it('selects raw', () => {
    expect(readTicketBody(Buffer.from('{"feed":"raw"}'))).toEqual(right('raw'));
  });

  it.each(['{', ' ', '{"feed":"raw"', 'raw', '[]', '["raw"]', 'null', '"raw"', '1', 'true'])(
    'is not an object: %j',
    (body) => {
      expect(readTicketBody(Buffer.from(body))).toEqual(left('invalid-body'));
    },
  );

  it.each([json, `${json}; charset=utf-8`, 'Application/JSON'])('is declared as JSON: %s', (contentType) => {
    expect(isDeclaredJson(contentType)).toBe(true);
  });

  it.each([undefined, 'text/plain', 'application/x-www-form-urlencoded', 'application/jsonl'])(
    'is not declared as JSON: %s',
    (contentType) => {
      expect(isDeclaredJson(contentType)).toBe(false);
    },
  );

  it('is not UTF-8', () => {
    const body = Buffer.from([...Buffer.from('{"a":"'), 0xff, ...Buffer.from('"}')]);
    expect(readTicketBody(body)).toEqual(left('invalid-body'));
  });

  it.each(['""', '"Market"', '"raw "', 'null', '1', '["raw"]', '{}', '"toString"'])('is not a feed: %s', (feed) => {
    expect(readTicketBody(Buffer.from(`{"feed":${feed}}`))).toEqual(left('unknown-feed'));
  });
});
