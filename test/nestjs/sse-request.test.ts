import { describe, expect, it } from '@jest/globals';
import { PassThrough } from 'node:stream';
import { isPipelined, lastEventIdOf, responseOf } from '../../src/nestjs/sse-request.js';

const headers = {};

describe('responseOf', () => {
  it('returns the response that Express stores in the request', () => {
    const res = new PassThrough();
    expect(responseOf({ headers, res })).toBe(res);
  });

  it('returns the response that Node stores in the socket, for Fastify and node:http', () => {
    const socket = new PassThrough() as PassThrough & { _httpMessage?: unknown };
    const raw = { headers, socket };
    const response = { req: raw };
    socket._httpMessage = response;
    expect(responseOf({ headers, raw })).toBe(response);
    expect(responseOf(raw)).toBe(response);
  });

  it('returns the socket while it sends the response to another request', () => {
    const socket = new PassThrough() as PassThrough & { _httpMessage?: unknown };
    socket._httpMessage = { req: 'another' };
    expect(responseOf({ headers, raw: { headers, socket } })).toBe(socket);
  });

  it('returns the stream of HTTP/2', () => {
    const stream = new PassThrough();
    expect(responseOf({ headers, raw: { headers, stream, socket: {} } })).toBe(stream);
  });

  it('returns undefined when there is none', () => {
    expect(responseOf({ headers })).toBeUndefined();
  });
});

describe('isPipelined', () => {
  const socket = (sending: unknown) => ({ _httpMessage: sending });
  it('is true on Express while the response has no socket', () => {
    const responseWith = (socket: unknown) => Object.assign(new PassThrough(), { socket });
    expect(isPipelined({ headers, res: responseWith(null) })).toBe(true);
    expect(isPipelined({ headers, res: responseWith({}) })).toBe(false);
  });

  it('is true on Fastify while the socket sends the response to another request', () => {
    const raw = { headers, socket: socket({ req: 'another' }) };
    expect([isPipelined({ headers, raw }), isPipelined(raw)]).toEqual([true, true]);
    const own = { headers, socket: {} };
    own.socket = socket({ req: own });
    expect([isPipelined({ headers, raw: own }), isPipelined(own)]).toEqual([false, false]);
  });

  it('is false over HTTP/2, and for an unknown request', () => {
    expect(isPipelined({ headers, raw: { stream: {}, socket: socket({ req: 'another' }) } })).toBe(false);
    expect([isPipelined({ headers }), isPipelined({ headers, raw: { socket: socket(null) } })]).toEqual([false, false]);
  });
});

describe('lastEventIdOf', () => {
  it('reads the header', () => {
    expect(lastEventIdOf({ headers: { 'last-event-id': 'a.1' } })).toBe('a.1');
    expect(lastEventIdOf({ headers: { 'last-event-id': ['a.1', 'a.2'] } })).toBe('a.1');
    expect(lastEventIdOf({ headers })).toBeUndefined();
  });
});
