import { describe, expect, it, jest } from '@jest/globals';
import type { DetailedPeerCertificate } from 'node:tls';
import { nodeFinding, proxyFinding } from '../../../src/cli/doctor/local-checks.js';
import {
  addressesFinding,
  addressesOf,
  dnsTimeoutMs,
  tcpFinding,
  unknownHostFinding,
} from '../../../src/cli/doctor/network-checks.js';
import { clockFinding } from '../../../src/cli/doctor/service-checks.js';
import { noTlsFinding, tlsFacts, type TlsFacts, tlsFinding } from '../../../src/cli/doctor/tls-check.js';
import { conclusion } from '../../../src/cli/doctor/report.js';
import { fakeTimers } from '../../support/fake-timers.js';

const dayMs = 24 * 3_600_000;

describe('nodeFinding', () => {
  it.each([
    ['18.20.0', 'failed'],
    ['20.18.3', 'failed'],
    ['20.19.0', 'ok'],
    ['22.0.0', 'ok'],
  ])('of %s is %s', (version, status) => {
    expect(nodeFinding(version)).toMatchObject({ status, text: expect.stringContaining(`Node ${version}`) });
  });
});

describe('proxyFinding', () => {
  const url = new URL('https://feed.example');
  const HTTPS_PROXY = 'http://user:planted-password@proxy.example:3128';
  it.each([
    [{}, 'ok', /^none$/],
    [{ HTTPS_PROXY }, 'ok', /^through proxy\.example:3128, from HTTPS_PROXY$/],
    [{ https_proxy: HTTPS_PROXY }, 'ok', /^through proxy\.example:3128/],
    [{ HTTPS_PROXY, NO_PROXY: 'example' }, 'ok', /^none for this address, .* NO_PROXY or loopback$/],
    [{ HTTPS_PROXY, NODE_USE_ENV_PROXY: '0' }, 'ok', /NODE_USE_ENV_PROXY is 0$/],
    [{ HTTP_PROXY: HTTPS_PROXY }, 'warning', /^none: HTTP_PROXY has no effect on an https: address$/],
    [{ all_proxy: HTTPS_PROXY }, 'warning', /^none: ALL_PROXY has no effect/],
  ])('with %j is %s', (env, status, text) => {
    expect(proxyFinding(url, env)).toMatchObject({ status, text: expect.stringMatching(text) });
    expect(proxyFinding(url, env).text).not.toContain('planted');
  });

  it('is none for a service on this machine', () => {
    expect(proxyFinding(new URL('http://127.0.0.1:1'), { HTTP_PROXY: HTTPS_PROXY })).toMatchObject({ status: 'ok' });
  });
});

describe('the findings of the network', () => {
  it('name the addresses of both families', () => {
    expect(addressesFinding('a.example', [{ address: '::1', family: 6 }])).toMatchObject({
      text: 'a.example: IPv4 none; IPv6 ::1',
      facts: { addresses: ['::1'] },
    });
  });

  it('tell a name that does not exist from a DNS that does not answer', () => {
    expect(unknownHostFinding('a.example', 'ENOTFOUND').text).toBe('DNS knows no host a.example.');
    expect(unknownHostFinding('a.example', 'EAI_AGAIN').text).toBe('DNS did not answer for a.example (EAI_AGAIN).');
  });

  it('do not wait for a DNS that is silent', async () => {
    using _timers = fakeTimers();
    const addresses = addressesOf('a.example', () => new Promise(() => undefined));
    jest.advanceTimersByTime(dnsTimeoutMs);
    await expect(addresses).rejects.toMatchObject({ code: 'ETIMEDOUT' });
  });

  it('warn if one address family does not work', () => {
    const four = { address: '10.0.0.1', ms: 12 };
    const six = { address: '2001:db8::1', ms: 1 };
    expect(tcpFinding(443, [four, six])).toMatchObject({ status: 'ok' });
    expect(tcpFinding(443, [four, { ...six, error: 'ENETUNREACH' }])).toMatchObject({
      status: 'warning',
      text: 'port 443: 10.0.0.1 in 12 ms; 2001:db8::1 failed: ENETUNREACH',
    });
    expect(tcpFinding(443, [{ ...four, error: 'ETIMEDOUT' }])).toMatchObject({
      status: 'failed',
      exitCode: 7,
      advice: expect.stringMatching(/^A firewall.*of the base URL\. .*set HTTPS_PROXY\.$/),
    });
    expect(tcpFinding(3128, [{ ...four, error: 'ETIMEDOUT' }], new URL('http://proxy.example:3128'))).toMatchObject({
      advice: expect.stringMatching(/^A firewall.*of the proxy in HTTPS_PROXY\.$/),
    });
  });

  it('warn about a wrong clock', () => {
    expect(clockFinding(undefined).status).toBe('skipped');
    expect(clockFinding(-5_000).status).toBe('ok');
    expect(clockFinding(125_000)).toMatchObject({
      status: 'warning',
      text: 'This machine is 2 min 05 s ahead of the service.',
    });
    expect(clockFinding(-125_000).text).toBe('This machine is 2 min 05 s behind the service.');
  });
});

describe('tlsFacts', () => {
  /** Plays a socket whose server showed a certificate. */
  const socketWith = (certificate: object, authorizationError?: unknown): Parameters<typeof tlsFacts>[0] => ({
    authorized: authorizationError === undefined,
    getProtocol: () => null,
    getPeerCertificate: () => ({ valid_to: 'Jan  1 00:00:00 2026 GMT', ...certificate }) as DetailedPeerCertificate,
    ...{ authorizationError },
  });

  it('has the chain up to the root, which is its own issuer', () => {
    const root: { subject: object; issuerCertificate?: object } = { subject: { O: 'Root' } };
    root.issuerCertificate = root;
    const leaf = { subject: { CN: 'feed.example' }, issuerCertificate: { subject: {}, issuerCertificate: root } };
    expect(tlsFacts(socketWith(leaf))).toEqual({
      protocol: 'TLS',
      problem: undefined,
      chain: ['feed.example', 'without a name', 'Root'],
      names: 'feed.example',
      expiresAt: Date.UTC(2026, 0, 1),
    });
  });

  it('has the names of the certificate, and the code of a problem', () => {
    const subjectaltname = 'DNS:a.example, IP Address:10.0.0.1';
    const problems = ['CERT_HAS_EXPIRED', Object.assign(new Error(), { code: 'ERR_TLS' }), new Error('no code')];
    expect(problems.map((problem) => tlsFacts(socketWith({ subjectaltname }, problem)))).toMatchObject(
      ['CERT_HAS_EXPIRED', 'ERR_TLS', 'no code'].map((problem) => ({
        ...{ names: 'a.example, 10.0.0.1', chain: ['without a name'], problem },
      })),
    );
  });
});

describe('tlsFinding', () => {
  const now = Date.UTC(2026, 0, 1);
  const facts: TlsFacts = {
    protocol: 'TLSv1.3',
    problem: undefined,
    chain: ['feed.example', 'R1', 'Root'],
    names: 'feed.example',
    expiresAt: now + 60 * dayMs,
  };

  it('names the chain and the days until the certificate expires, and warns if they are few', () => {
    expect(tlsFinding(facts, now)).toMatchObject({
      status: 'ok',
      text: 'TLSv1.3; feed.example < R1 < Root; 60 days left',
    });
    expect(tlsFinding({ ...facts, expiresAt: now + 14 * dayMs }, now).status).toBe('ok');
    expect(tlsFinding({ ...facts, expiresAt: now + 14 * dayMs - 1 }, now)).toMatchObject({
      status: 'warning',
      text: expect.stringContaining('13 days left'),
    });
  });

  it('explains an expired certificate with both clocks', () => {
    const expired = { ...facts, problem: 'CERT_HAS_EXPIRED', expiresAt: now - dayMs };
    expect(tlsFinding(expired, now)).toMatchObject({
      status: 'failed',
      exitCode: 6,
      text: 'The certificate expired on 2025-12-31, by the clock of this machine.',
      advice: expect.stringContaining('2026-01-01T00:00:00.000Z'),
    });
  });

  it('explains a certificate that is not valid yet with the clock of this machine', () => {
    expect(tlsFinding({ ...facts, problem: 'CERT_NOT_YET_VALID' }, now)).toMatchObject({
      status: 'failed',
      exitCode: 6,
      advice: expect.stringContaining('2026-01-01T00:00:00.000Z'),
    });
  });

  it('explains a connection that failed in TLS', () => {
    expect(noTlsFinding(new Error('no answer in 10000 ms'))).toMatchObject({
      status: 'failed',
      exitCode: 7,
      text: 'The connection failed: no answer in 10000 ms',
    });
  });
});

describe('conclusion', () => {
  it('counts the warnings', () => {
    const warned = { status: 'warning', text: '' } as const;
    expect(conclusion([warned, { status: 'ok', text: '' }])).toBe('The feed works, with 1 warning.');
    expect(conclusion([warned, { status: 'failed', text: '' }])).toBe(
      'The feed cannot work. The later checks were skipped.',
    );
  });
});
