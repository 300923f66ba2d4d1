import { describe, expect, it } from '@jest/globals';
import { errorCode, nextEvent, send, sendRaw } from '../bare-client.js';
import { serviceFactory } from '../service-under-test.js';

const start = serviceFactory();

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE' | 'OPTIONS';

describe('the addresses of the service (contract 4)', () => {
  it.each(['/', '/v1', '/v1/wss/tickets/', '/v2/wss/tickets', '/V1/wss/tickets', '/ws/', '/ws/market', '//', '/%'])(
    '404 for %s',
    async (path) => {
      const service = await start();
      const violation = nextEvent(service, 'violation');
      const answer = await send(service.baseUrl + path, { method: 'POST' });
      expect([answer.status, errorCode(answer)]).toEqual([404, 'not-found']);
      expect(await violation).toMatchObject({ rule: 'unknown-path' });
    },
  );

  it.each<[Method, string, string]>([
    ['GET', '/v1/wss/tickets', 'POST'],
    ['PUT', '/v1/wss/tickets', 'POST'],
    ['DELETE', '/v1/wss/tickets', 'POST'],
    ['OPTIONS', '/v1/wss/tickets', 'POST'],
    ['POST', '/ws', 'GET'],
    ['OPTIONS', '/ws', 'GET'],
  ])('405 for %s %s: Allow: %s', async (method, path, allow) => {
    const service = await start();
    const violation = nextEvent(service, 'violation');
    const answer = await send(service.baseUrl + path, { method });
    expect([answer.status, errorCode(answer), answer.headers['allow']]).toEqual([405, 'method-not-allowed', allow]);
    expect(await violation).toMatchObject({ rule: 'wrong-method' });
  });

  it('405 for HEAD, without a body', async () => {
    const service = await start();
    const { status, headers, body } = await send(`${service.baseUrl}/v1/wss/tickets`, { method: 'HEAD' });
    expect([status, headers['allow'], body]).toEqual([405, 'POST', undefined]);
  });

  it('426 for a GET without an upgrade', async () => {
    const service = await start();
    const answer = await send(`${service.baseUrl}/ws`);
    expect([answer.status, errorCode(answer), answer.headers['upgrade']]).toEqual([
      426,
      'upgrade-required',
      'websocket',
    ]);
  });

  it('has a Date header in every answer', async () => {
    const service = await start();
    const answers = [
      await send(`${service.baseUrl}/`),
      await send(`${service.baseUrl}/v1/wss/tickets`, { method: 'POST' }),
    ];
    for (const { headers } of answers)
      expect(Math.abs(Date.parse(String(headers['date'])) - Date.now())).toBeLessThan(5_000);
  });

  it('400 for a request that is not HTTP', async () => {
    const service = await start();
    expect(await sendRaw(service, 'this is not HTTP')).toMatch(/^HTTP\/1\.1 400 /);
  });
});
