"""A short operator: a Shop gets a ConfigMap with its prices, and its status contains the number of prices."""

from typing import Annotated

from ctrlmgr import App, Column, Context, Kind, Meta, Metadata, Model, Status

app = App("shop")


class ShopSpec(Model):
    prices: Annotated[dict[str, int], Meta(min_length=1)]
    currency: Annotated[str, Meta(pattern="^[A-Z]{3}$")] = "EUR"


class ShopStatus(Status):
    prices: int = 0


class Shop(Kind, api_version="example.com/v1", short_names=["sh"], columns=[Column("Prices", ".status.prices")]):
    spec: ShopSpec
    status: ShopStatus = ShopStatus()


class ConfigMap(Kind, api_version="v1"):
    data: dict[str, str] = {}


@app.controller(Shop, owns=[ConfigMap])
def shop_controller(shop: Shop, context: Context) -> None:
    """Create or update the price list of each shop."""
    prices = {item: f"{price} {shop.spec.currency}" for item, price in shop.spec.prices.items()}
    context.apply(ConfigMap(metadata=Metadata(name=f"{shop.name}-prices"), data=prices))
    shop.status.prices = len(prices)
    context.condition("Ready", True, "PriceListWritten")
