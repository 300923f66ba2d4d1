import { describe, expect, it } from '@jest/globals';
import { type RelayMessage, sseText } from '../../src/relay/relay-message.js';

describe('sseText', () => {
  it.each<[string, RelayMessage, string]>([
    [
      'events, with one field for each line',
      { id: 'e.2.1.9', data: '{"a":1}\n{"b":2}' },
      'id: e.2.1.9\ndata: {"a":1}\ndata: {"b":2}\n\n',
    ],
    [
      'a message with a type',
      { id: 'e.0.0.1', type: 'hello', data: '{"at":1}' },
      'event: hello\nid: e.0.0.1\ndata: {"at":1}\n\n',
    ],
    ['the last message', { id: 'e.0.0.1', type: 'complete', data: '{}' }, 'event: complete\nid: e.0.0.1\ndata: {}\n\n'],
    [
      'a heartbeat as a comment, which changes no position',
      { id: 'e.0.0.1', type: 'heartbeat', data: '' },
      ': heartbeat\n\n',
    ],
  ])('writes %s', (_what, message, text) => {
    expect(sseText(message)).toBe(text);
  });
});
