import { Global, Module, type OnModuleInit } from '@nestjs/common';
import { invalidOption } from '../protocol/rules.js';
import { connectOf, type TradeFeedModuleOptions } from './module-options.js';

/** A feed of an application: its name, and the place in the program that defines it. */
export interface FeedPlace {
  readonly name: string | undefined;
  readonly where: string;
  /** Makes each definition unique: with `moduleIdGeneratorAlgorithm: 'deep-hash'` Nest treats equal definitions as one module. */
  readonly id: string;
}

/** A registered feed. */
export interface FeedEntry {
  readonly where: string;
  /** Checks the feed when its options are resolved. */
  start(options: TradeFeedModuleOptions): void;
}

/** Registers the feeds of one application, and rejects definitions that cannot work. */
export class AppFeeds implements OnModuleInit {
  readonly #entries: Entry[] = [];
  #hooks: Hooks;

  constructor(isAtStart: boolean) {
    this.#hooks = isAtStart ? 'pending' : 'missed';
  }

  /**
   * Registers a feed.
   *
   * @throws TradeFeedError with code `invalid-options` when there is a feed of the same name
   */
  add(place: FeedPlace): FeedEntry {
    const same = this.#entries.find(({ name }) => name === place.name);
    if (same) throw sameName(same, place);
    const entry: Entry = {
      ...place,
      isStarted: false,
      start: (options) => {
        if (entry.isStarted) throw createdPerRequest(place);
        entry.isStarted = true;
        if (connectOf(options) === 'bootstrap' && this.#hooks === 'missed') throw loadedLazily(place);
      },
    };
    this.#entries.push(entry);
    return entry;
  }

  /** Rejects feeds whose options are missing at the start: Nest creates those for each request. Nest calls it. */
  onModuleInit(): void {
    this.#hooks = 'missed';
    for (const entry of this.#entries) if (!entry.isStarted) throw createdPerRequest(entry);
  }
}

/** Whether Nest will still call the hooks of a module that is loaded now. */
type Hooks = 'pending' | 'missed';

interface Entry extends FeedPlace, FeedEntry {
  isStarted: boolean;
}

const sameName = (one: FeedPlace, other: FeedPlace) =>
  invalidOption(
    'name',
    `different for each feed of an application, but ${one.where} and ${other.where} both ${
      one.name === undefined ? 'have none' : `have '${one.name}'`
    }. Set a \`name\` for each additional feed. For one feed, define the module once, and import the result in each place`,
  );

const createdPerRequest = ({ where }: FeedPlace) =>
  invalidOption(
    'inject',
    `providers with the default scope. A provider of ${where} is request-scoped, so each request would open a connection and close ` +
      'the previous one. Inject providers with the default scope; for a key that changes, pass a function: `apiKey: () => …`',
  );

const loadedLazily = ({ where }: FeedPlace) =>
  invalidOption(
    'connect',
    `'first-subscriber' in a module that is loaded lazily. Nest does not call onApplicationBootstrap for ${where}, so the feed would ` +
      'never connect. Subscribe after the load, or import the module at the start',
  );

const atStart = Symbol('at start');

/** Provides the {@link AppFeeds} of an application. Nest creates this module once, because it is a class without a definition. */
// eslint-disable-next-line @typescript-eslint/no-extraneous-class -- a module of Nest is a class
class AppFeedsModule {}
Module({
  providers: [
    {
      provide: AppFeeds,
      inject: [{ token: atStart, optional: true }],
      useFactory: (isAtStart?: boolean) => new AppFeeds(isAtStart === true),
    },
  ],
  exports: [AppFeeds],
})(AppFeedsModule);

// Nest binds a global module to all others when the application starts, but not to modules that were loaded lazily before it.
// eslint-disable-next-line @typescript-eslint/no-extraneous-class -- a module of Nest is a class
class AtStartModule {}
Global()(AtStartModule);
Module({ providers: [{ provide: atStart, useValue: true }], exports: [atStart] })(AtStartModule);

/** The imports of each module with a feed. The order matters: the second one is global, and must follow the first. */
export const feedImports = [AppFeedsModule, AtStartModule];
