// Prints which exports differ between entry points, and whether values from a worker belong to the classes of all entry points.
import * as angular from 'rx-trade-feed/angular';
import * as browser from 'rx-trade-feed/browser';
import * as index from 'rx-trade-feed';
import * as interop from 'rx-trade-feed/interop';
import * as log from 'rx-trade-feed/log';
import * as nestjs from 'rx-trade-feed/nestjs';
import * as operators from 'rx-trade-feed/operators';
import * as otel from 'rx-trade-feed/otel';
import * as relay from 'rx-trade-feed/relay';
import * as settle from 'rx-trade-feed/settle';
import * as testing from 'rx-trade-feed/testing';
import { firstValueFrom } from 'rxjs';

const entries = [index, operators, relay, browser, angular, nestjs, otel, interop, settle, log, testing];
const valuesOf = (name) => entries.flatMap((entry) => (name in entry ? [entry[name]] : []));
const names = [...new Set(entries.flatMap((entry) => Object.keys(entry)))];
const shared = names.filter((name) => valuesOf(name).length > 1);
const isOf = (value, name) => valuesOf(name).every((type) => value instanceof type);

const service = await testing.startTradeFeedService({ sources: { market: testing.marketBatches$({ rate: 50 }) } });
const keyOf = (account) => service.createAccount(account).createApiKey();
const first = (apiKey) =>
  firstValueFrom(index.tradeFeed$('market', { baseUrl: service.baseUrl, apiKey, receiveIn: 'worker' }));
const frame = await first(keyOf());
const failure = await first(keyOf({ entitled: false })).catch((error) => error);
await service.shutdown();

console.log(
  JSON.stringify({
    shared: shared.sort(),
    different: shared.filter((name) => new Set(valuesOf(name)).size > 1),
    frame: isOf(frame, 'Frame'),
    failure: [failure.code, isOf(failure, 'TradeFeedError')],
    renamed: names.filter((name) =>
      valuesOf(name).some((value) => /^class\b/.test(String(value)) && value.name !== name),
    ),
    classes: names.filter((name) => valuesOf(name).some((value) => /^class\b/.test(String(value)))).sort(),
  }),
);
