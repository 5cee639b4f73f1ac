import json

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_POST

from shop.messaging import send_on_commit
from shop.models import Order


@require_POST
@transaction.atomic
def order(request: HttpRequest) -> JsonResponse:
    made = Order.objects.create(article=request.POST["article"])
    send_on_commit(json.dumps({"id": made.pk}), "orders")
    if made.article == "the moon":
        raise LookupError("no such article")  # neither is the order there then, nor is its message sent
    return JsonResponse({"id": made.pk}, status=201)
