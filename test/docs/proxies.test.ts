import { expect, it } from '@jest/globals';
import { fencesOf, read } from './fences.js';

it('the lines for nginx in docs/how-to/proxies.md are those of the nginx that the tests run', () => {
  const tested = read('test/peers/nginx.mjs')
    .split('\n')
    .map((line) => line.trim());
  const fences = fencesOf('docs/how-to/proxies.md').filter(({ language }) => language === 'nginx');
  const lines = fences.flatMap(({ code }) => code.split('\n')).map((line) => line.trim());
  expect(lines).toContain('proxy_set_header Upgrade $http_upgrade;');
  expect(lines.filter((line) => line !== '' && !tested.includes(line))).toEqual([]);
});
