import { Inject } from '@nestjs/common';
import { TradeFeed } from './trade-feed.js';

/**
 * Returns the token of a feed, for `inject` and `app.get()`: the class `TradeFeed`, or a string for a feed with a name.
 *
 * @param name - the `name` of the module @defaultValue none: the feed without a name
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
 * Injects a feed into a constructor parameter or a property. The feed without a name is injected by its type, without this decorator.
 *
 * @param name - the `name` of the module @defaultValue none: the feed without a name
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
