import { Inject } from '@nestjs/common';
import { TradeFeed } from './trade-feed.js';

/**
 * Gives the token of a feed: the class `TradeFeed` itself, or a text for a feed with a name. For `inject` and for `app.get()`.
 *
 * @param name - the `name` that the module was given @defaultValue none: the feed without a name
 * @example
 * ```ts
 * import { getTradeFeedToken, TradeFeed } from 'rx-trade-feed/nestjs';
 *
 * export const rawWriter = {
 *   provide: 'RAW_WRITER',
 *   inject: [getTradeFeedToken('raw')],
 *   useFactory: (raw: TradeFeed) => raw.frames$.subscribe((frame) => console.log(frame.text())),
 * };
 * ```
 */
export const getTradeFeedToken = (name?: string): string | typeof TradeFeed =>
  name === undefined ? TradeFeed : `TradeFeed:${name}`;

/**
 * Injects a feed, for a parameter of a constructor or a property. The feed without a name needs none of this: its type is enough.
 *
 * @param name - the `name` that the module was given @defaultValue none: the feed without a name
 * @example
 * ```ts
 * import { Injectable } from '@nestjs/common';
 * import { InjectTradeFeed, TradeFeed } from 'rx-trade-feed/nestjs';
 *
 * @Injectable()
 * export class Writer {
 *   constructor(@InjectTradeFeed('raw') private readonly raw: TradeFeed) {}
 * }
 * ```
 */
export const InjectTradeFeed = (name?: string): ParameterDecorator & PropertyDecorator =>
  Inject(getTradeFeedToken(name));
