import { describe, expect, it } from '@jest/globals';
import { isLoopback } from '../../src/protocol/loopback.js';

describe('isLoopback', () => {
  it.each([
    'http://localhost',
    'http://LOCALHOST:8080/x',
    'ws://127.0.0.1:1/ws',
    'ws://127.255.255.254/ws',
    'http://127.1', // the URL parser reads it as 127.0.0.1
    'http://0x7f000001',
    'http://[::1]:8080',
    'http://[0:0:0:0:0:0:0:1]',
  ])('is true for %s', (url) => {
    expect(isLoopback(new URL(url))).toBe(true);
  });

  it.each([
    'http://example.com',
    'http://localhost.example.com',
    'http://notlocalhost',
    'http://127.0.0.1.example.com',
    'http://x127.0.0.1.nip.io',
    'http://128.0.0.1',
    'http://0.0.0.0',
    'http://10.0.0.1',
    'http://[::]',
    'http://[::2]',
    'http://[fe80::1]',
    'http://127.0.0.1@example.com', // a user name that looks like an address
    'http://example.com/?localhost',
  ])('is false for %s', (url) => {
    expect(isLoopback(new URL(url))).toBe(false);
  });
});
