import type { WireTicket } from '../../src/protocol/contract.js';

export const ticketBody: WireTicket = {
  ticket: 'tkt-planted-0815',
  token_type: 'Bearer',
  expires_at: '2026-11-20T12:00:00Z',
  wss_url: 'wss://stream.example.com/ws',
  feed: 'market',
  subprotocol: 'mmp.trade-batch.v1',
};

export type TicketField = keyof WireTicket;

export const rightTicketFields: Readonly<Record<TicketField, readonly string[]>> = {
  ticket: ['t', '~!"#$%&', 'eyJhbGciOi.J9.x-_', 'x'.repeat(8_192)],
  token_type: ['Bearer'],
  expires_at: [
    ...['2026-11-20t12:00:00z', '2026-11-20T12:00:00.123456789Z', '2026-11-20T12:00:00+00:00'],
    ...['2026-11-20T12:00:00-07:30', '2016-12-31T23:59:60Z', '2024-02-29T00:00:00Z'],
  ],
  wss_url: [
    ...['wss://stream.example.com:8443/a/b?c=d', 'wss://192.0.2.7/ws', 'ws://localhost:9000/ws', 'ws://127.0.0.1/ws'],
    'ws://[::1]:1/ws',
  ],
  feed: ['market', 'raw'],
  subprotocol: ['mmp.trade-batch.v1', 'a', "!#$%&'*+-.^_`|~09AZaz"],
};

const noText = [undefined, null, '', 5, true, {}];

export const wrongTicketFields: Readonly<Record<TicketField, readonly unknown[]>> = {
  ticket: [...noText, ' ', 'a b', 'a\r\nx-api-key: b', 'é', ['t'], { reveal: 't' }],
  token_type: [...noText, 'bearer', 'BEARER', 'Basic', ' Bearer', ['Bearer']],
  expires_at: [
    ...[...noText, ['2026-11-20T12:00:00Z'], 'soon', 1_795_176_000, '1795176000', '2026-11-20', '2026-11-20 12:00:00Z'],
    ...['2026-11-20T12:00:00', '2026-11-20T12:00Z', '2026-11-20T12:00:00z ', '2026-13-20T12:00:00Z'],
    ...['2026-11-20T25:00:00Z', '2026-11-20T12:61:00Z', '2026-11-20T12:00:61Z', '2026-11-20T12:00:00+25:00'],
    ...['+002026-11-20T12:00:00Z', 'Fri, 20 Nov 2026 12:00:00 GMT'],
  ],
  wss_url: [
    ...[...noText, ['wss://stream.example.com/ws'], '/ws', 'stream.example.com/ws', 'https://stream.example.com/ws'],
    ...['http://localhost/ws', 'ws://stream.example.com/ws', 'ws://127.0.0.1.example.com/ws', 'ws+unix:///tmp/socket'],
    ...['wss://', 'wss://user@stream.example.com/ws', 'wss://:password@stream.example.com/ws'],
    ...['wss://stream.example.com/ws#fragment', 'javascript:alert(1)'],
  ],
  feed: [...noText, 'Market', 'toString', 'market,raw', ['market']],
  subprotocol: [...noText, 'a b', 'a,b', 'a\r\nb: c', 'é', '"a"', 'a/b', 'a;b', 'a=b', ['a']],
};
