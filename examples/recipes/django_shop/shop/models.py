from django.db import models


class Order(models.Model):
    article = models.CharField(max_length=100)
    packed = models.IntegerField(default=0)


class Processed(models.Model):
    """The messages whose work is done: see the recipe of idempotent consumers."""

    consumer = models.CharField(max_length=100)
    message = models.CharField(max_length=200)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["consumer", "message"], name="once"),)
