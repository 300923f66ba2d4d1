import { Controller, Get, HttpCode, NotFoundException, Param, Post, UseGuards } from '@nestjs/common';
import { FeedGuard } from '../feed.guard.js';
import { demoControls } from './demo-controls.js';
import { LocalService } from './local-service.js';

/** Lets a viewer cause events at the local service. With a real service this controller doesn't exist. */
@Controller('demo')
@UseGuards(FeedGuard)
export class DemoController {
  private readonly service: LocalService;

  constructor(service: LocalService) {
    this.service = service;
  }

  /** Lists the events. */
  @Get()
  controls() {
    return demoControls(this.service.outageS).map(({ name, title, what }) => ({ name, title, what }));
  }

  /** Causes an event. */
  @Post(':name')
  @HttpCode(204)
  async cause(@Param('name') name: string): Promise<void> {
    const control = demoControls(this.service.outageS).find((each) => each.name === name);
    if (control === undefined) throw new NotFoundException('Unknown event. GET /demo lists all events.');
    await control.cause(this.service);
  }
}
